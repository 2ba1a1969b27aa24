// Package sample keeps the last minutes of the decisions of some keys, so that other limits can be
// tried on them.
//
// Whole keys are in the sample, so that the history of each is complete. The share of keys of a rule
// is halved while the memory is full, and doubled again later.
package sample

import (
	"context"
	"maps"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

const (
	// Window is how far back a sample reaches.
	Window = 10 * time.Minute

	budget   = 8 << 20 // bytes of all entries and keys
	keyBytes = 160     // of a key, and its text
	span     = 50 * time.Millisecond
	sweeps   = 10 * time.Second // between looks of Run
	maxLevel = 40
)

// Sample holds the recent decisions of some keys. Make one with [New]. It is safe for use by many
// goroutines.
type Sample struct {
	rules atomic.Pointer[map[string]*rule] // replaced by each new rule

	mu      sync.Mutex
	bytes   int
	started time.Time
	budget  int
}

// New makes a Sample.
func New() *Sample {
	s := &Sample{started: time.Now(), budget: budget}
	s.rules.Store(&map[string]*rule{})
	return s
}

// Add adds a decision, if its key is in the sample. It is for rules.Options.
func (s *Sample) Add(e rules.Event) {
	if e.Cost <= 0 || e.Outcome == rules.Failed { // no request, or no decision
		return
	}
	class := classOf(e.Key)
	r := (*s.rules.Load())[e.Rule.Name]
	if r != nil && class < r.level.Load() {
		return
	}
	s.add(&e, class)
}

// classOf returns the class of a key. Half of all keys have a class of at least 1, a quarter of at
// least 2, and so on. Keys of a high class stay while the share is halved. The class is the same
// on all instances, so that a key of a small share is in the samples of all.
func classOf(key string) uint32 {
	return uint32(min(bits.LeadingZeros64(xxhash.Sum64String(key)), maxLevel))
}

func (s *Sample) add(e *rules.Event, class uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	r := s.rule(e.Rule.Name)
	if class < r.level.Load() {
		return
	}
	s.bytes += r.add(e, class, now)
	if s.bytes > s.budget {
		s.dropOld(now)
	}
	for s.bytes > s.budget {
		s.halve()
	}
}

// rule returns the rule of this name.
func (s *Sample) rule(name string) *rule {
	known := *s.rules.Load()
	r := known[name]
	if r == nil {
		r = &rule{keys: map[string]*key{}}
		more := maps.Clone(known)
		more[name] = r
		s.rules.Store(&more)
	}
	return r
}

// Run drops what is older than the Window, and doubles shares while there is room, until ctx ends.
func (s *Sample) Run(ctx context.Context) {
	tick := time.NewTicker(sweeps)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.sweep(time.Now())
		}
	}
}

// sweep drops what is old. If much room is left, it doubles the share of the rule that has the
// smallest.
func (s *Sample) sweep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropOld(now)
	var smallest *rule
	known := *s.rules.Load()
	left := maps.Clone(known)
	for name, r := range known {
		level := r.level.Load()
		if len(r.keys) == 0 && level == 0 {
			delete(left, name) // the rule may be gone
		}
		if smallest == nil || level > smallest.level.Load() {
			smallest = r
		}
	}
	if len(left) < len(known) {
		s.rules.Store(&left)
	}
	if smallest != nil && s.bytes < s.budget/4 {
		smallest.double(now)
	}
}

func (s *Sample) dropOld(now time.Time) {
	for _, r := range *s.rules.Load() {
		s.bytes -= r.dropBefore(now.Add(-Window).UnixMicro())
	}
}

// halve drops half of the keys of the rule that takes the most room.
func (s *Sample) halve() {
	var largest *rule
	for _, r := range *s.rules.Load() {
		if largest == nil || r.bytes > largest.bytes {
			largest = r
		}
	}
	s.bytes -= largest.halve()
}
