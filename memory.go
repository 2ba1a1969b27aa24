package headgate

import (
	"cmp"
	"context"
	"hash/maphash"
	"math"
	"slices"
	"strconv"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/clock"
	"github.com/headgate/headgate/internal/memtable"
)

// Memory is the store inside this process. It is sharded and safe for use by many goroutines. It
// starts no goroutines and needs no closing.
//
// It holds a bounded number of keys; a key counts once for each limit that it is used with. Its
// table grows with the keys, takes about 31 bytes a key when full, and has no pointers for the
// garbage collector. A sliding log takes 8 bytes more for each grant that it remembers.
//
// # When it is full
//
// The store has 1 to 64 shards. A new key takes the slot of a key of its shard that is in its
// initial state. If there is no such key, all new keys of the shard share one state for each limit
// until a slot is free. So new keys may be denied for up to the length of a window, or the time in
// which a bucket refills. docs/memory.md says why, and how large to make the store. A TakeAll with
// two new keys that share a state returns [ErrFull], unless both requests are forced. A forced
// request ([Request.Force]) that does not fit is not charged to a shared state.
type Memory struct {
	clock  clock.Clock
	seed   maphash.Seed
	shards []memtable.Shard
}

// NewMemory makes a store with room for 4 million keys.
func NewMemory() *Memory { return NewMemorySize(0) }

// NewMemorySize makes a store with room for the given number of keys, 0 for 4 million. There is
// room for up to a tenth more. When the store is full, new keys share extra slots: one for each
// limit in each shard, and at most keys/4 + 26. A negative number panics.
func NewMemorySize(keys int) *Memory {
	if keys < 0 {
		panic(invalid("keys", int64(keys), "at least 0"))
	}
	keys = cmp.Or(keys, 1<<22)
	shards := 64
	for shards > 1 && keys/shards < 4096 {
		shards /= 2
	}
	m := &Memory{seed: maphash.MakeSeed(), shards: make([]memtable.Shard, shards)}
	m.clock.Start()
	for i := range m.shards {
		m.shards[i].Init(shardRoom(keys, shards))
	}
	return m
}

// shardRoom is the bound of one of several shards: its even part, and five standard
// deviations more because a hash does not spread keys evenly.
func shardRoom(keys, shards int) int {
	if shards == 1 {
		return keys
	}
	even := float64(keys) / float64(shards)
	return int(even+5*math.Sqrt(even)) + 1
}

// Take implements [Store]. It returns an error for bad input, and [ErrFull] if more limits are in
// use than there are extra slots. The context is not used.
func (m *Memory) Take(_ context.Context, r Request) (Decision, error) {
	if int64(r.MaxWait)|r.Headroom == 0 && r.Start == nil && r.At.IsZero() {
		if d, err := m.take(r.Key, r.Limit, r.Cost); d.RetryAfter == 0 || !r.Force {
			return d, err
		}
	}
	if err := r.Validate(); err != nil {
		return Decision{}, err
	}
	now := m.clock.Micros()
	o := r.order(now)
	v, err := m.takeSlow(m.hash(r.Key), r.Limit, now, o)
	if err != nil {
		return Decision{}, err
	}
	if v.Within(o.MaxWait) {
		r.granted(o, v)
	}
	return decision(r.Limit, v), nil
}

// take decides at the time of the clock. It does what most callers ask, about a key that is
// known, and leaves the rest to takeSlow.
func (m *Memory) take(key string, l Limit, cost int64) (Decision, error) {
	if !l.valid() {
		return Decision{}, l.Validate()
	}
	now := m.clock.Micros()
	h := m.hash(key)
	s := m.shard(h)
	s.Lock()
	v, ok := s.TakePlain(l.rule, memtable.Hash(h, l.rule), now, cost)
	s.Unlock()
	if !ok {
		var err error
		if v, err = m.takeSlow(h, l, now, algorithm.Order{Now: now, Cost: cost}); err != nil {
			return Decision{}, err
		}
	}
	return decision(l, v), nil
}

// takeSlow is take for every request and key. now is the time of the clock.
func (m *Memory) takeSlow(
	hash uint64, l Limit, now int64, o algorithm.Order,
) (algorithm.Verdict, error) {
	s := m.shard(hash)
	s.Lock()
	defer s.Unlock()
	own := memtable.Hash(hash, l.rule)
	h, ok := s.Prepare(l.rule, own, min(o.Now, now)) // a time that lies ahead expires nothing
	if !ok {
		return algorithm.Verdict{}, ErrFull
	}
	v := s.Take(l.rule, h, o, true)
	if h != own && o.Cost > 0 && v.Within(o.MaxWait) {
		s.Shared(own)
	}
	return v, nil
}

// TakeAll implements [Store].
func (m *Memory) TakeAll(_ context.Context, rs []Request, ds []Decision) error {
	if err := ValidateAll(rs, ds); err != nil {
		return err
	}
	var few [8]*memtable.Shard
	locked := m.lock(rs, few[:0])
	defer unlock(locked)
	var few2 [8]memtable.Spot
	spots, err := m.spots(rs, few2[:0])
	if err != nil {
		return err
	}
	wait := int64(0) // until the latest of their starts
	for i := range rs {
		v := spots[i].Decide(0, rs[i].Forced())
		ds[i] = decision(rs[i].Limit, v)
		if rs[i].Cost > 0 && !rs[i].Force {
			wait = max(wait, v.Retry)
		}
	}
	if !Granted(rs, ds) {
		return nil
	}
	for i := range rs {
		if !rs[i].Forced() {
			v := spots[i].Decide(wait, true)
			rs[i].granted(spots[i].Order, v)
			ds[i] = decision(rs[i].Limit, v)
		}
	}
	return nil
}

// spots finds the spots of rs, whose shards are locked.
func (m *Memory) spots(rs []Request, spots []memtable.Spot) ([]memtable.Spot, error) {
	now, full := m.clock.Micros(), false
	for i := range rs {
		hash, l := m.hash(rs[i].Key), rs[i].Limit.rule
		p := memtable.Spot{
			Shard: m.shard(hash), Rule: l, Own: memtable.Hash(hash, l), Order: rs[i].order(now),
		}
		var ok bool
		if p.H, ok = p.Prepare(l, p.Own, min(p.Order.Now, now)); !ok {
			return nil, ErrFull
		}
		p.Hold(p.H, now, len(rs))
		full = full || p.H != p.Own
		spots = append(spots, p)
	}
	if full && memtable.Clash(spots) {
		return nil, ErrFull
	}
	for i := range spots { // a later one may have made the shard forget an earlier one's limit
		if !spots[i].Register(spots[i].Rule) {
			return nil, ErrFull
		}
	}
	return spots, nil
}

// lock locks the shards of rs, each once and in their order in memory, so that two calls
// never wait for each other.
func (m *Memory) lock(rs []Request, locked []*memtable.Shard) []*memtable.Shard {
	var few [8]int
	indices := few[:0]
	for i := range rs {
		indices = append(indices, m.shardOf(m.hash(rs[i].Key)))
	}
	slices.Sort(indices)
	for _, i := range slices.Compact(indices) {
		m.shards[i].Lock()
		locked = append(locked, &m.shards[i])
	}
	return locked
}

func unlock(locked []*memtable.Shard) {
	for _, s := range locked {
		s.EndGroup()
		s.Unlock()
	}
}

// Reset implements [Store]. While the store is full, a new key that shares a slot has no
// state of its own to reset.
func (m *Memory) Reset(_ context.Context, key string, l Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s, h := m.locked(key, l)
	defer s.Unlock()
	s.Reset(h)
	return nil
}

// State returns the state of a key under a valid limit, for [Memory.SetState], also of another
// process: nil for the initial state. The numbers have no other use.
func (m *Memory) State(key string, l Limit) []int64 {
	s, h := m.locked(key, l)
	defer s.Unlock()
	return s.Numbers(l.rule, h, m.clock.Micros())
}

// SetState replaces the state of a key by one that State has returned for the same limit. It
// returns an [InvalidError] for other numbers, and [ErrFull] if the key has no slot of its own.
func (m *Memory) SetState(key string, l Limit, state []int64) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s, own := m.locked(key, l)
	defer s.Unlock()
	if h, ok := s.Prepare(l.rule, own, m.clock.Micros()); !ok || h != own {
		return ErrFull
	}
	if !s.Restore(l.rule, own, state) {
		return wrong("state", strconv.Itoa(len(state))+" other numbers", "those of State")
	}
	return nil
}

// locked returns the slot of a key under a valid limit, and its shard, which is locked.
func (m *Memory) locked(key string, l Limit) (*memtable.Shard, uint64) {
	hash := m.hash(key)
	s := m.shard(hash)
	s.Lock()
	return s, memtable.Hash(hash, l.rule)
}

// Keys returns the number of slots in use. Some of these may belong to keys that are back in their
// initial state, because their slots have not been reused yet.
func (m *Memory) Keys() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.Lock()
		n += s.Keys()
		s.Unlock()
	}
	return n
}

// hash is keyed by a seed that is secret to the process, so that no client can make keys
// that collide.
func (m *Memory) hash(key string) uint64 { return maphash.String(m.seed, key) }

func (m *Memory) shardOf(hash uint64) int { return int(hash & uint64(len(m.shards)-1)) }

func (m *Memory) shard(hash uint64) *memtable.Shard { return &m.shards[m.shardOf(hash)] }
