package denycache

import (
	"strings"
	"sync"

	"github.com/headgate/headgate"
)

// ways is the number of denials in a set.
const ways = 4

// set is the places that some of the keys share.
type set struct {
	mu      sync.Mutex
	changed int64 // the time of the last refund or reset of one of the keys
	entries [ways]entry
}

type identity struct {
	key   string
	limit headgate.Limit
}

// entry is a denial. Times are microseconds by the clock of the Store.
type entry struct {
	hash  uint64
	id    identity
	cost  int64
	until int64
	reset int64
}

func (s *set) find(hash uint64, id identity) *entry {
	for i := range s.entries {
		if e := &s.entries[i]; e.hash == hash && e.id == id {
			return e
		}
	}
	return nil
}

// recall returns the waits of a remembered denial, in microseconds; retry is 0 if there is none.
func (s *set) recall(hash uint64, id identity, cost, now int64) (retry, reset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.find(hash, id)
	// The clocks of the store and of this process count whole microseconds that begin at
	// different moments, so up to one more may have passed for the store.
	now++
	if e == nil || cost < e.cost || now >= e.until {
		return 0, 0
	}
	return e.until - now, e.reset - now
}

// remember keeps e, a denial that was asked for at that time.
func (s *set) remember(e entry, asked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked <= s.changed {
		return // it may have been decided before the refund or reset
	}
	place := s.find(e.hash, e.id)
	if place == nil {
		place = s.victim()
		e.id.key = strings.Clone(e.id.key) // which may be part of something large
	} else {
		e.id = place.id
	}
	*place = e
}

// victim returns the place of the denial that ends first.
func (s *set) victim() *entry {
	first := &s.entries[0]
	for i := range s.entries {
		if e := &s.entries[i]; e.until < first.until {
			first = e
		}
	}
	return first
}

func (s *set) forget(hash uint64, id identity, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = now
	if e := s.find(hash, id); e != nil {
		*e = entry{}
	}
}
