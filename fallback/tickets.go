package fallback

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// mostTickets bounds what is remembered of them, in bytes to 4 MB: then the oldest is forgotten.
const mostTickets = 1 << 16

// tickets are those of what Open granted. Nothing counts there, so to take it back there is nothing to do but
// to say so, to who asks in time and for no more than was granted. It keeps no keys.
type tickets struct {
	mu   sync.Mutex
	seed maphash.Seed
	of   map[uint64]ticket
	ring []uint64 // the keys of that map, or some that it had
	next int      // the oldest of ring, once that is full
}

type ticket struct {
	left  int64 // of the cost
	until time.Time
}

// place is that of the ticket of r.
func (t *tickets) place(r *headgate.Request) uint64 {
	return maphash.Comparable(t.seed, struct {
		key    string
		limit  headgate.Limit
		ticket uint64
	}{r.Key, r.Limit, r.Ticket})
}

// when is the time of r.
func when(r *headgate.Request) time.Time {
	if r.At.IsZero() {
		return time.Now()
	}
	return r.At
}

// knows says whether r is about a ticket of what was granted here, and may still be taken back.
func (t *tickets) knows(r *headgate.Request) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.Ticket == 0 || r.Cost > 0 || len(t.of) == 0 {
		return false
	}
	granted, known := t.of[t.place(r)]
	return known && when(r).Before(granted.until)
}

// note remembers r, which was granted here, or what it took back.
func (t *tickets) note(r *headgate.Request) {
	if r.Ticket == 0 || r.Cost == 0 || r.Cost > 0 && r.Hold == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of, t.seed = make(map[uint64]ticket), maphash.MakeSeed()
	}
	place := t.place(r)
	if r.Cost > 0 {
		t.keep(place)
		t.of[place] = ticket{left: r.Cost, until: when(r).Add(r.Hold)}
		return
	}
	granted := t.of[place]
	if granted.left += max(r.Cost, -granted.left); granted.left == 0 {
		delete(t.of, place)
		return
	}
	t.of[place] = granted
}

// keep makes room for the ticket of a place.
func (t *tickets) keep(place uint64) {
	if len(t.ring) < mostTickets {
		t.ring = append(t.ring, place)
		return
	}
	delete(t.of, t.ring[t.next])
	t.ring[t.next] = place
	t.next = (t.next + 1) % mostTickets
}
