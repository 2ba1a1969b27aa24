package waitline

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Lines holds the callers of this process that wait for tokens: a line for each K, in the order in
// which they came. Only the head of a line asks the store, as late as it can without losing rate to
// the time that an answer takes. So callers that leave have nothing in the store. If more callers
// can pass than the store answers one by one, several heads ask at once.
//
// The zero Lines is ready to use.
type Lines[K comparable] struct {
	n    atomic.Int64 // lines
	mu   sync.Mutex
	of   map[K]*line[K]
	trip time.Duration // how long most answers take
}

// Store asks a store for the start of one caller.
type Store interface {
	// Ask asks for a start that is at most maxWait ahead. After an error it may be charged.
	Ask(maxWait time.Duration) (Answer, error)

	// Cancel gives back a start that is ahead, if the store can. After an error it stays charged.
	Cancel(s Start) error

	// Inline reports whether the store answers at once.
	Inline() bool

	// Late returns the error of a caller that would have to wait too long under l.
	Late(l *algorithm.Rule, wait time.Duration) error
}

// Answer is a grant or a denial.
type Answer struct {
	Granted bool
	Wait    time.Duration   // until the start, or until the same request would be granted
	Limit   *algorithm.Rule // the one with the longest wait, or nil if it is not known
	Start   Start           // of a grant
	Left    int64           // tokens that remain
	Polls   bool            // the store does not book ahead
	Paused  bool            // nothing is granted or booked before the wait is over
	Invalid bool            // the error concerns this caller alone
}

// Start is a start that was granted.
type Start struct {
	At    time.Time // by the clock of the store, or zero
	Grant any       // what else the store says of it
}

// Wait returns when a caller may use n tokens, with the start that it got, or an error if it may
// not. by is its deadline, or the zero time. The limits of k grant at most so many
// tokens at once.
func (s *Lines[K]) Wait(
	ctx context.Context, k K, n, most int64, by time.Time, store Store,
) (Start, error) {
	c := &caller{n: n, by: by, store: store, done: make(chan struct{})}
	s.mu.Lock()
	l := s.line(k, most)
	l.join(c)
	l.advance(time.Now())
	select {
	case <-c.done:
	case <-ctx.Done():
		if l.leave(c) {
			return Start{}, ctx.Err()
		}
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.start, c.err
}

// Any reports whether there is a line.
func (s *Lines[K]) Any() bool { return s.n.Load() > 0 }

// Has reports whether there is a line of k.
func (s *Lines[K]) Has(k K) bool {
	if !s.Any() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[k] != nil
}

// Wake has each line ask now, because what it knows of its limits is no longer so.
func (s *Lines[K]) Wake() {
	s.mu.Lock()
	lines := slices.Collect(maps.Values(s.of))
	s.mu.Unlock()
	for _, l := range lines {
		l.mu.Lock()
		l.last.known = false
		l.advance(time.Now())
	}
}

// line returns the line of k. s is locked.
func (s *Lines[K]) line(k K, most int64) *line[K] {
	if l := s.of[k]; l != nil {
		return l
	}
	if s.of == nil {
		s.of = make(map[K]*line[K])
	}
	l := &line[K]{Lines: s, key: k, room: most}
	s.of[k] = l
	s.n.Add(1)
	return l
}

// drop forgets l, unless that was done.
func (s *Lines[K]) drop(l *line[K]) {
	if s.of[l.key] == l {
		delete(s.of, l.key)
		s.n.Add(-1)
	}
}
