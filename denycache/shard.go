package denycache

import (
	"math"
	"strings"
	"sync"

	"github.com/headgate/headgate"
)

type shard struct {
	mu      sync.Mutex
	size    int   // of denials, at most
	changed int64 // the time of the last refund or reset of one of the keys
	denials map[identity]denial
}

// identity names a state. Limits with one ID share it.
type identity struct{ key, limitID string }

// denial has times in microseconds by the clock of the Store.
type denial struct {
	limit               headgate.Limit
	needs, until, reset int64 // needs is the cost and the headroom that were denied
}

// recall returns the waits of a remembered denial, in microseconds; retry is 0 if there is none. A
// denial under other numbers of l is forgotten: a grant under the new numbers may end it.
func (s *shard) recall(id identity, l headgate.Limit, needs, now int64) (retry, reset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.denials[id]
	if ok && d.limit != l {
		delete(s.denials, id)
		return 0, 0
	}
	// The clocks of the store and of this process count whole microseconds that begin at
	// different moments, so up to one more may have passed for the store.
	now++
	if !ok || needs < d.needs || now >= d.until {
		return 0, 0
	}
	return d.until - now, d.reset - now
}

// remember keeps d, a denial that was asked for at that time.
func (s *shard) remember(id identity, d denial, asked int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked <= s.changed {
		return // it may have been decided before the refund or reset
	}
	if _, known := s.denials[id]; !known {
		if len(s.denials) >= s.size {
			s.evict()
		}
		id.key = strings.Clone(id.key) // which may be part of something large
	}
	s.denials[id] = d
}

// evict forgets the denial that ends first of a few, which the map returns at random.
func (s *shard) evict() {
	const samples = 4
	victim, first, seen := identity{}, int64(math.MaxInt64), 0
	for id, d := range s.denials {
		if d.until < first {
			victim, first = id, d.until
		}
		if seen++; seen == samples {
			break
		}
	}
	delete(s.denials, victim)
}

func (s *shard) forget(id identity, now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed = now
	delete(s.denials, id)
}
