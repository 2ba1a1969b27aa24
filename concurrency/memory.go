package concurrency

import (
	"context"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/clock"
)

// Memory is the [Store] of one process. It starts no goroutine and needs no Close. Make one with
// [NewMemory].
//
// A key has an entry while it has permits. Expired permits are removed when their key is used
// again, or when the number of keys has doubled since the last search for them. The maps keep the
// room for the largest number of keys that they ever held.
type Memory struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards [16]shard
}

type shard struct {
	mu       sync.Mutex
	keys     map[string]permits
	sweepAt  int // the number of keys at which those with expired permits are removed
	watchers map[string][]chan<- struct{}
}

const firstSweep = 16

// NewMemory returns a store with no permits in use.
func NewMemory() *Memory {
	m := &Memory{seed: maphash.MakeSeed()}
	m.clock.Start()
	for i := range m.shards {
		m.shards[i] = shard{
			keys:     make(map[string]permits),
			sweepAt:  firstSweep,
			watchers: make(map[string][]chan<- struct{}),
		}
	}
	return m
}

// AcquirePermit implements [Store]. It fails only for invalid input and ignores the context.
func (m *Memory) AcquirePermit(_ context.Context, r Request) (Decision, error) {
	s, now, err := m.lock(&r)
	if err != nil {
		return Decision{}, err
	}
	defer s.mu.Unlock()
	ps, retry := s.keys[r.Key].expire(now).acquire(&r, now)
	if len(s.keys) >= s.sweepAt {
		s.sweep(min(now, m.clock.Micros()))
	}
	s.put(r.Key, ps)
	after := time.Duration(retry) * time.Microsecond
	return Decision{Limit: r.Limit, InUse: int64(len(ps)), RetryAfter: after}, nil
}

// RenewPermit implements [Store]. It returns the errors of AcquirePermit.
func (m *Memory) RenewPermit(_ context.Context, r Request) (held bool, err error) {
	s, now, err := m.lock(&r)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	ps := s.keys[r.Key].expire(now)
	i := ps.index(r.ID)
	if i >= 0 {
		ps = ps.renew(i, now+r.TTL.Microseconds())
	}
	s.put(r.Key, ps)
	return i >= 0, nil
}

// ReleasePermit implements [Store]. It returns the errors of AcquirePermit.
func (m *Memory) ReleasePermit(_ context.Context, r Request) (held bool, err error) {
	s, now, err := m.lock(&r)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	ps := s.keys[r.Key].expire(now)
	i := ps.index(r.ID)
	if i >= 0 {
		ps = slices.Delete(ps, i, i+1)
		if r.After > 0 {
			ps = ps.insert(PermitID{}, now+r.After.Microseconds()) // which no call names
		}
		for _, c := range s.watchers[r.Key] {
			wake(c)
		}
	}
	s.put(r.Key, ps)
	return i >= 0, nil
}

// WatchPermits implements [Store]. It reports every release.
func (m *Memory) WatchPermits(key string, wake chan<- struct{}) (stop func()) {
	s := m.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[key] = append(s.watchers[key], wake)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		w := s.watchers[key]
		i := slices.Index(w, wake)
		if w = slices.Delete(w, i, i+1); len(w) > 0 {
			s.watchers[key] = w
		} else {
			delete(s.watchers, key)
		}
	})
}

// Keys returns the number of keys with permits, including expired ones that are not yet removed.
func (m *Memory) Keys() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}

func (m *Memory) shard(key string) *shard {
	return &m.shards[maphash.String(m.seed, key)%uint64(len(m.shards))]
}

// lock validates r, locks its shard and returns its time.
func (m *Memory) lock(r *Request) (s *shard, now int64, err error) {
	if err := r.Validate(); err != nil {
		return nil, 0, err
	}
	s = m.shard(r.Key)
	s.mu.Lock()
	if !r.At.IsZero() {
		return s, r.At.UnixMicro(), nil
	}
	return s, m.clock.Micros(), nil // under the lock, so that it never runs back for a key
}

func (s *shard) put(key string, ps permits) {
	if len(ps) > 0 {
		s.keys[key] = ps
	} else {
		delete(s.keys, key)
	}
}

// sweep removes the keys whose permits have all expired.
func (s *shard) sweep(now int64) {
	maps.DeleteFunc(s.keys, func(_ string, ps permits) bool { return ps[len(ps)-1].expires <= now })
	s.sweepAt = max(2*len(s.keys), firstSweep)
}

// wake sends to a channel with room for one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// permits are those of one key, in the order in which they expire. redisstore/permits.lua has the
// same functions.
type permits []permit

type permit struct {
	id      PermitID
	expires int64 // microseconds since the Unix epoch
}

func (ps permits) expire(now int64) permits {
	n := 0
	for n < len(ps) && ps[n].expires <= now {
		n++
	}
	return slices.Delete(ps, 0, n)
}

func (ps permits) index(id PermitID) int {
	return slices.IndexFunc(ps, func(p permit) bool { return p.id == id && id != PermitID{} })
}

// insert adds a permit after those that expire no later.
func (ps permits) insert(id PermitID, expires int64) permits {
	i := len(ps)
	for i > 0 && ps[i-1].expires > expires {
		i--
	}
	return slices.Insert(ps, i, permit{id, min(expires, maxTime)})
}

// renew makes the permit at i expire no sooner than at expires.
func (ps permits) renew(i int, expires int64) permits {
	p := ps[i]
	return slices.Delete(ps, i, i+1).insert(p.id, max(p.expires, expires))
}

// acquire adds the permit of r if there is room, or else returns the time until there is.
func (ps permits) acquire(r *Request, now int64) (next permits, retry int64) {
	expires := now + r.TTL.Microseconds()
	if i := ps.index(r.ID); i >= 0 {
		return ps.renew(i, expires), 0
	}
	n := int64(len(ps))
	switch {
	case n < r.Limit && r.ID == PermitID{}:
		return ps, 0
	case n < r.Limit:
		return ps.insert(r.ID, expires), 0
	case n == 0:
		return ps, r.TTL.Microseconds()
	default:
		return ps, ps[min(n-r.Limit, n-1)].expires - now
	}
}

var _ Store = (*Memory)(nil)
