package headgate

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"

	"github.com/headgate/headgate/internal/clock"
)

// MemoryConcurrency is the [ConcurrencyStore] inside this process. It starts no
// goroutine and needs no closing. Make one with [NewMemoryConcurrency].
//
// A key of which nothing is in flight takes no memory. The leases of holders who went
// away without giving back are forgotten when their key is asked about, or else when
// there are twice the keys that were left when that was last looked for.
type MemoryConcurrency struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards [16]flightShard
}

type flightShard struct {
	mu       sync.Mutex
	keys     map[string]leases
	peak     int // the most keys there were since the map was made
	sweep    int // so many keys, and those whose leases have ended are looked for
	watchers map[string][]chan<- struct{}
}

const firstSweep = 16

// NewMemoryConcurrency makes a store with nothing in flight.
func NewMemoryConcurrency() *MemoryConcurrency {
	m := &MemoryConcurrency{seed: maphash.MakeSeed()}
	m.clock.Start()
	for i := range m.shards {
		m.shards[i].sweep = firstSweep
	}
	return m
}

// AcquireFlight implements [ConcurrencyStore]. It returns no error but for bad input;
// the context is not used.
func (m *MemoryConcurrency) AcquireFlight(_ context.Context, r FlightRequest) (FlightDecision, error) {
	s, now, err := m.lock(r)
	if err != nil {
		return FlightDecision{}, err
	}
	defer s.mu.Unlock()
	l, retry := s.keys[r.Key].forget(now).acquire(r.ID, r.N, now, r.Lease.Microseconds())
	if retry == 0 && len(s.keys) >= s.sweep {
		s.sweepUp(min(now, m.clock.Micros()))
	}
	s.put(r.Key, l)
	return FlightDecision{N: r.N, InFlight: int64(len(l)), RetryAfter: duration(retry)}, nil
}

// RenewFlight implements [ConcurrencyStore], with errors as AcquireFlight.
func (m *MemoryConcurrency) RenewFlight(_ context.Context, r FlightRequest) (held bool, err error) {
	return m.change(r, func(l leases, i int, now int64) leases {
		return l.prolong(i, now, r.Lease.Microseconds())
	})
}

// ReleaseFlight implements [ConcurrencyStore], with errors as AcquireFlight.
func (m *MemoryConcurrency) ReleaseFlight(_ context.Context, r FlightRequest) (held bool, err error) {
	return m.change(r, func(l leases, i int, _ int64) leases {
		s := m.shard(r.Key)
		for _, wake := range s.watchers[r.Key] {
			send(wake)
		}
		return slices.Delete(l, i, i+1)
	})
}

// change applies f to the leases of a key and the index of a flight among them, if
// it is held.
func (m *MemoryConcurrency) change(r FlightRequest, f func(l leases, i int, now int64) leases) (held bool, err error) {
	s, now, err := m.lock(r)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	l := s.keys[r.Key].forget(now)
	i := l.find(r.ID)
	if i >= 0 {
		l = f(l, i, now)
	}
	s.put(r.Key, l)
	return i >= 0, nil
}

// WatchFlights implements [ConcurrencyStore]. It tells of each flight that is given back.
func (m *MemoryConcurrency) WatchFlights(key string, wake chan<- struct{}) (stop func()) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watchers == nil {
		s.watchers = make(map[string][]chan<- struct{})
	}
	s.watchers[key] = append(s.watchers[key], wake)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w := s.watchers[key]
		i := slices.Index(w, wake)
		if s.watchers[key] = slices.Delete(w, i, i+1); len(w) == 1 {
			delete(s.watchers, key)
		}
		if len(s.watchers) == 0 {
			s.watchers = nil
		}
	})
}

// Keys is the number of keys of which something is in flight, or was and has not been
// swept yet.
func (m *MemoryConcurrency) Keys() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}

func (m *MemoryConcurrency) shard(key string) *flightShard {
	return &m.shards[maphash.String(m.seed, key)%uint64(len(m.shards))]
}

// lock finds the shard and the time of r, and locks the shard.
func (m *MemoryConcurrency) lock(r FlightRequest) (*flightShard, int64, error) {
	if err := r.Validate(); err != nil {
		return nil, 0, err
	}
	s := m.shard(r.Key)
	s.mu.Lock()
	now := m.clock.Micros() // under the lock, so that it never runs back for a key
	if !r.At.IsZero() {
		now = r.At.UnixMicro()
	}
	return s, now, nil
}

// put replaces the leases of a key.
func (s *flightShard) put(key string, l leases) {
	if len(l) == 0 {
		if _, known := s.keys[key]; known {
			delete(s.keys, key)
			s.shrink()
		}
		return
	}
	if s.keys == nil {
		s.keys = make(map[string]leases)
	}
	if cap(l) > 64 && len(l) < cap(l)/4 {
		l = slices.Clone(l)
	}
	s.keys[key] = l
	s.peak = max(s.peak, len(s.keys))
}

// sweepUp forgets the keys of which nothing is in flight any more.
func (s *flightShard) sweepUp(now int64) {
	maps.DeleteFunc(s.keys, func(_ string, l leases) bool { return l[len(l)-1].end <= now })
	s.sweep = max(2*len(s.keys), firstSweep)
	s.shrink()
}

// shrink gives memory back, which a map does not by itself. A small map stays.
func (s *flightShard) shrink() {
	n := len(s.keys)
	if s.peak <= firstSweep || n > s.peak/4 {
		return
	}
	fewer := make(map[string]leases, n)
	maps.Copy(fewer, s.keys)
	s.keys, s.peak, s.sweep = fewer, n, max(2*n, firstSweep)
}

// send wakes who listens at a channel with room for one.
func send(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

var _ ConcurrencyStore = (*MemoryConcurrency)(nil)
