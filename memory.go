package headgate

import (
	"context"
	"hash/maphash"
	"slices"
)

// DefaultKeys is the number of keys that NewMemory(0) holds.
const DefaultKeys = 1 << 20

// Memory is the store inside this process. It is sharded and safe for use by
// many goroutines, starts none of its own, and needs no closing.
//
// It holds a bounded number of keys (a key counts once for each limit it is
// asked with) in a table that grows as keys come: about 31 bytes a key when full, and no
// pointers for the garbage collector. A sliding log takes 8 bytes more for each
// grant it remembers.
//
// # When it is full
//
// A key whose state is as at first sight again takes no part: its place is
// reused. If every place is taken by a key that still counts for something, then
// nothing is forgotten: newcomers share one state for each limit (and shard)
// until there is room. So a flood of new keys can neither grow the store nor
// push out the keys it knows and win them fresh budgets. Strangers are short of
// tokens while it lasts; known keys notice nothing.
type Memory struct {
	clock  clock
	seed   maphash.Seed
	shards []shard
}

// NewMemory makes a store with room for at least the given number of keys, and
// for at most a sixteenth more and a few; 0 or less means [DefaultKeys].
func NewMemory(keys int) *Memory {
	if keys <= 0 {
		keys = DefaultKeys
	}
	shards := 64
	for shards > 1 && keys/shards < 4096 {
		shards /= 2
	}
	m := &Memory{seed: maphash.MakeSeed(), shards: make([]shard, shards)}
	m.clock.start()
	for i := range m.shards {
		m.shards[i].most = shardRoom(keys, shards)
		m.shards[i].slots = make([]slot, firstSlots)
		m.shards[i].clock = &m.clock
	}
	return m
}

// shardRoom is the bound of one of several shards: its even part, and a thirty-second
// more because a hash does not spread keys evenly.
func shardRoom(keys, shards int) int {
	if shards == 1 {
		return keys
	}
	return keys/shards + keys/shards/32 + 1
}

// Take implements [Store]. It returns no error but for bad input, and [ErrFull]
// in the case told there; the context is not used.
func (m *Memory) Take(_ context.Context, r Request) (Decision, error) {
	now, err := m.admit(&r)
	if err != nil {
		return Decision{}, err
	}
	s, h := m.locate(r.Key, r.Limit.rule)
	s.mu.Lock()
	v, err := s.take(r.Limit.rule, h, now, r.Cost, true)
	s.mu.Unlock()
	if err != nil {
		return Decision{}, err
	}
	return v.decision(r.Limit), nil
}

// TakeAll implements [Store].
func (m *Memory) TakeAll(_ context.Context, rs []Request, ds []Decision) error {
	if err := ValidateAll(rs, ds); err != nil {
		return err
	}
	var few [8]*shard
	locked := m.lock(rs, few[:0])
	defer unlock(locked)
	clock := m.clock.micros()
	granted, err := m.each(rs, ds, clock, false)
	if err != nil || !granted {
		return err
	}
	granted, err = m.each(rs, ds, clock, true)
	if err != nil || granted {
		return err
	}
	// Newcomers to a full store shared one state, and it was too little for both.
	_, err = m.each(rs, ds, clock, false)
	return err
}

// each decides rs one after the other, under the locks of all their shards, and
// charges them if charge is set. It stops charging at the first that is refused,
// and takes the charges before it back.
func (m *Memory) each(rs []Request, ds []Decision, clock int64, charge bool) (granted bool, err error) {
	granted = true
	for i := range rs {
		v, err := m.takeLocked(&rs[i], clock, rs[i].Cost, charge)
		if err == nil {
			ds[i] = v.decision(rs[i].Limit)
			granted = granted && (v.allowed || rs[i].Cost == 0)
		}
		if charge && (err != nil || !granted) {
			for j := range i {
				_, _ = m.takeLocked(&rs[j], clock, -rs[j].Cost, true)
			}
		}
		if err != nil || (charge && !granted) {
			return false, err
		}
	}
	return granted, nil
}

func (m *Memory) takeLocked(r *Request, clock, cost int64, charge bool) (verdict, error) {
	now, err := r.micros()
	if err != nil {
		return verdict{}, err
	}
	if now == 0 {
		now = clock
	}
	s, h := m.locate(r.Key, r.Limit.rule)
	return s.take(r.Limit.rule, h, now, cost, charge)
}

// lock locks the shards of rs, each once and in their order in memory, so that
// two calls never wait for each other.
func (m *Memory) lock(rs []Request, locked []*shard) []*shard {
	var few [8]int
	indices := few[:0]
	for i := range rs {
		indices = append(indices, m.shardOf(m.hash(rs[i].Key)))
	}
	slices.Sort(indices)
	for _, i := range slices.Compact(indices) {
		m.shards[i].mu.Lock()
		locked = append(locked, &m.shards[i])
	}
	return locked
}

func unlock(locked []*shard) {
	for _, s := range locked {
		s.mu.Unlock()
	}
}

// Reset implements [Store]. A newcomer that shares a state while the store is
// full has none of its own to reset.
func (m *Memory) Reset(_ context.Context, key string, l Limit) error {
	if err := l.Validate(); err != nil {
		return err
	}
	s, h := m.locate(key, l.rule)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset(h)
	return nil
}

// Keys is the number of places taken: keys that count for something, and some
// whose place has not been reused yet.
func (m *Memory) Keys() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += s.taken
		s.mu.Unlock()
	}
	return n
}

// admit checks r and tells its time.
func (m *Memory) admit(r *Request) (now int64, err error) {
	if r.Limit.rule == nil || !r.Limit.rule.valid {
		return 0, r.Limit.Validate()
	}
	if r.At.IsZero() {
		return m.clock.micros(), nil
	}
	return r.micros()
}

// hash is keyed by a seed that nobody outside can know, so that nobody can make
// keys that collide.
func (m *Memory) hash(key string) uint64 { return maphash.String(m.seed, key) }

func (m *Memory) shardOf(hash uint64) int { return int(hash & uint64(len(m.shards)-1)) }

// locate gives the shard of key, which is the same for all limits, and the hash
// of its place there under l.
func (m *Memory) locate(key string, l *rule) (s *shard, h uint64) {
	h = m.hash(key)
	return &m.shards[m.shardOf(h)], h ^ l.identity | 1<<idBits
}
