package headgate

import (
	"context"
	"hash/maphash"
	"math"
	"slices"

	"github.com/headgate/headgate/internal/clock"
)

// DefaultKeys is the number of keys that NewMemory(0) holds.
const DefaultKeys = 1 << 20

// Memory is the store inside this process. It is sharded and safe for use by
// many goroutines, starts none of its own, and needs no closing.
//
// It holds a bounded number of keys (a key counts once for each limit it is
// asked with) in a table that grows as keys come: about 31 bytes a key when full, and no
// pointers for the garbage collector. A sliding log takes 8 bytes more for each
// grant it remembers. A key that is asked about under new numbers of a named limit, while
// something consumed under the old ones counts, takes some 110 more for as long as the longer
// window, or the slower bucket, takes to be as at first sight, and at most eight times that.
// A key with a turn ahead or a grant that may be taken back takes some 240 more, and 48 for each
// grant since, of which 1024 are kept; those are not hidden from the garbage collector.
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
	clock  clock.Clock
	seed   maphash.Seed
	shards []shard
}

// NewMemory makes a store with room for the given number of keys, and for at most a
// tenth more; 0 or less means [DefaultKeys]. On top come the places that newcomers
// share when it is full, one for each limit and at most a quarter and some 20 in all.
func NewMemory(keys int) *Memory {
	if keys <= 0 {
		keys = DefaultKeys
	}
	shards := 64
	for shards > 1 && keys/shards < 4096 {
		shards /= 2
	}
	m := &Memory{seed: maphash.MakeSeed(), shards: make([]shard, shards)}
	m.clock.Start()
	for i := range m.shards {
		m.shards[i].most = shardRoom(keys, shards)
		m.shards[i].slots = make([]slot, firstSlots)
		m.shards[i].clock = &m.clock
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

// Take implements [Store]. It returns no error but for bad input, and [ErrFull]
// in the case told there; the context is not used.
func (m *Memory) Take(_ context.Context, r Request) (Decision, error) {
	at, err := r.micros()
	if err != nil {
		return Decision{}, err
	}
	if r.MaxWait != 0 || r.Ticket != 0 || r.Hold != 0 {
		return m.takeTurn(&r, at)
	}
	return m.take(r.Key, r.Limit, r.Cost, at)
}

// take decides at the given time, 0 for the clock. It does what is asked most, a key
// that is known under the limit it was counted under last, and under no other version of it,
// and leaves the rest to takeOther.
func (m *Memory) take(key string, l Limit, cost, at int64) (Decision, error) {
	if l.rule == nil || !l.rule.valid {
		return Decision{}, l.Validate()
	}
	if at == 0 {
		at = m.clock.Micros()
	}
	h := m.hash(key)
	s := &m.shards[m.shardOf(h)]
	s.mu.Lock()
	t := s.find(place(h, l.rule))
	if t == nil || s.limits[t.tag&idMask] != l.rule || t.a&marked != 0 || l.rule.algorithm == AlgorithmSlidingLog {
		s.mu.Unlock()
		return m.takeOther(h, l, order{now: at, cost: cost})
	}
	next, v := l.rule.decide(t.state(l.rule), at, cost, cost != 0)
	if v.granted() && cost != 0 {
		t.put(l.rule, next)
	}
	s.mu.Unlock()
	return v.decision(l), nil
}

// takeTurn is take for a grant that may be booked ahead, or taken back.
func (m *Memory) takeTurn(r *Request, at int64) (Decision, error) {
	if err := r.Validate(); err != nil {
		return Decision{}, err
	}
	if at == 0 {
		at = m.clock.Micros()
	}
	return m.takeOther(m.hash(r.Key), r.Limit, r.order(at))
}

// takeOther is take for a key that is new, or was counted under another limit, or has
// a log, or something beside its state.
func (m *Memory) takeOther(hash uint64, l Limit, o order) (Decision, error) {
	s := &m.shards[m.shardOf(hash)]
	s.mu.Lock()
	defer s.mu.Unlock()
	own := place(hash, l.rule)
	h, err := s.prepare(l.rule, own, o.now, 0)
	if err != nil {
		return Decision{}, err
	}
	v := s.take(l.rule, h, o, true)
	if h != own && v.within(o.wait) && o.cost > 0 {
		s.guest.add(own)
	}
	return v.decision(l), nil
}

// TakeAll implements [Store].
func (m *Memory) TakeAll(_ context.Context, rs []Request, ds []Decision) error {
	if err := ValidateAll(rs, ds); err != nil {
		return err
	}
	var few [8]*shard
	locked := m.lock(rs, few[:0])
	defer unlock(locked)
	var few2 [8]spot
	spots, err := m.spots(rs, few2[:0])
	if err != nil {
		return err
	}
	turn := turnOfAll{}
	for i := range rs {
		v := spots[i].look(&rs[i], rs[i].Cost)
		cost := withSharing(rs, spots, i)
		if v.granted() && cost != rs[i].Cost {
			v = spots[i].together(&rs[i], cost)
		}
		ds[i] = v.decision(rs[i].Limit)
		turn.add(&rs[i], v.retry, cost != rs[i].Cost)
	}
	if !turn.granted() {
		return nil
	}
	if turn.shared {
		return ErrFull
	}
	for i := range rs {
		if rs[i].takesBack() {
			takeBack(rs, spots, ds, i)
			continue
		}
		ds[i] = spots[i].take(turn.order(&rs[i], spots[i].now), rs[i].Limit)
	}
	return nil
}

// spot is where and when a request of a group is decided.
type spot struct {
	shard  *shard
	own, h uint64 // h differs for newcomers to a full store
	now    int64
}

// look decides r at that cost, and charges nothing.
func (p *spot) look(r *Request, cost int64) verdict {
	o := r.order(p.now)
	o.cost = cost
	return p.shard.take(r.Limit.rule, p.h, o, false)
}

// take decides and charges o.
func (p *spot) take(o order, l Limit) Decision {
	v := p.shard.take(l.rule, p.h, o, true)
	if p.h != p.own && o.cost > 0 {
		p.shard.guest.add(p.own)
	}
	return v.decision(l)
}

// together is the verdict on requests that share a state and would be granted one by
// one. If they are not together, the later one is: wait until there is room for it.
func (p *spot) together(r *Request, cost int64) verdict {
	v := p.look(r, cost)
	if v.retry == never {
		v.retry = max(v.reset, 1)
	}
	return v
}

// pending counts the slots in s that requests before may take, and newcomers share.
func pending(spots []spot, s *shard) int {
	n := 0
	for i := range spots {
		if spots[i].shard == s && !seen(spots[:i], spots[i]) && s.find(spots[i].h) == nil {
			n++
		}
	}
	return n
}

func seen(spots []spot, p spot) bool {
	return slices.ContainsFunc(spots, func(q spot) bool { return q.shard == p.shard && q.h == p.h })
}

// spots finds the spots of rs, whose shards are locked.
func (m *Memory) spots(rs []Request, spots []spot) ([]spot, error) {
	current := m.clock.Micros()
	for i := range rs {
		now, err := rs[i].micros()
		if err != nil {
			return nil, err
		}
		if now == 0 {
			now = current
		}
		s, own := m.locate(rs[i].Key, rs[i].Limit.rule)
		h, err := s.prepare(rs[i].Limit.rule, own, now, pending(spots, s))
		if err != nil {
			return nil, err
		}
		spots = append(spots, spot{s, own, h, now})
	}
	for i := range rs { // a later one may have made the shard forget an earlier one's limit
		if !spots[i].shard.register(rs[i].Limit.rule) {
			return nil, ErrFull
		}
	}
	return spots, nil
}

// withSharing is the cost of rs[i], and what requests before it ask of the state that
// it asks as well: that happens only to newcomers to a full store, who share one.
func withSharing(rs []Request, spots []spot, i int) int64 {
	cost, capacity := rs[i].Cost, rs[i].Limit.rule.capacity
	for j := range i {
		if cost > 0 && cost <= capacity && spots[j].shard == spots[i].shard && spots[j].h == spots[i].h {
			cost += min(max(rs[j].Cost, 0), capacity)
		}
	}
	return cost
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

// place is where the state of a key of that hash lies under l. It is not 0 in the
// bits that a tag keeps.
func place(hash uint64, l *rule) uint64 { return hash ^ l.identity | 1<<idBits }
