package headgate

import (
	"math/bits"
	"sync"
)

// shard is one part of a Memory: an open-addressed table with linear probing,
// under a lock of its own.
type shard struct {
	mu    sync.Mutex
	slots []slot
	taken int // slots in use
	most  int // bound on taken; the shared slots of newcomers come on top
	tries int // keys that found the table full since it was last rebuilt

	limits []*rule          // the limits that slots were counted under
	ids    map[*rule]uint16 // their places in limits

	logs  arena
	clock *clock
}

// slot is the state of one key under one limit, with no pointer in it.
type slot struct {
	tag uint64 // 48 bits of hash, 16 bits of index into limits; 0: never used
	a   uint64 // at; of a log: its block
	b   uint64 // used, or used and previous; of a log: its length
}

const (
	idBits = 16
	maxIDs = 1 << idBits
	idMask = maxIDs - 1
)

func (t *slot) state(l *rule) state {
	if l.algorithm == AlgorithmSlidingWindow {
		return state{at: int64(t.a), used: int64(t.b >> 32), previous: int64(t.b & maxPair)}
	}
	return state{at: int64(t.a), used: int64(t.b)}
}

// take decides one request for the place h. It writes what follows if charge is
// set and the request is granted, and else what a change of limits made of the
// state, unless the request only looks. The shard is locked.
func (s *shard) take(l *rule, h uint64, now, cost int64, charge bool) (verdict, error) {
	t := s.find(h)
	if t == nil || s.limits[t.tag&idMask] != l {
		var err error
		if t, h, err = s.prepare(l, h, now); err != nil {
			return verdict{}, err
		}
	}
	if l.algorithm == AlgorithmSlidingLog {
		return s.takeLog(t, l, h, now, cost, charge), nil
	}
	var was state
	adopted := false
	if t != nil {
		old := s.limits[t.tag&idMask]
		if was = t.state(old); old != l {
			was, adopted = l.adopt(old, was, now)
		}
	}
	charge = charge && cost != 0
	next, v := l.decide(was, now, cost, charge)
	switch {
	case charge && v.allowed:
		s.write(t, l, h, next)
	case adopted && cost != 0:
		s.write(t, l, h, was)
	}
	return v, nil
}

// write puts next under l into the place t of h, or into a new one if t is nil.
func (s *shard) write(t *slot, l *rule, h uint64, next state) {
	if t == nil {
		if next == (state{}) {
			return
		}
		t = s.insert(h)
	}
	if s.limits[t.tag&idMask] != l {
		t.tag = t.tag&^idMask | uint64(s.ids[l])
	}
	t.a, t.b = uint64(next.at), uint64(next.used)
	if l.algorithm == AlgorithmSlidingWindow {
		t.b = uint64(next.used)<<32 | uint64(next.previous)
	}
}

// takeLog is take for a sliding log, whose entries lie in the arena.
func (s *shard) takeLog(t *slot, l *rule, h uint64, now, cost int64, charge bool) verdict {
	var log []entry
	adopted := false
	if t != nil {
		log = s.log(t)
		if old := s.limits[t.tag&idMask]; old.period != l.period {
			log = log[expired(log, now+logSkew(log, now), old.period):]
			adopted = true
		}
	}
	charge = charge && cost != 0
	v := slidingLog(l, log, now, cost, charge)
	switch {
	case charge && v.allowed:
		log = log[expired(log, now+logSkew(log, now), l.period):]
		s.writeLog(t, l, h, record(log, now, l.ask(cost)))
	case adopted && cost != 0:
		s.writeLog(t, l, h, log)
	}
	return v
}

func (s *shard) writeLog(t *slot, l *rule, h uint64, log []entry) {
	if t == nil {
		if len(log) == 0 {
			return
		}
		t = s.insert(h)
	}
	t.tag = t.tag&^idMask | uint64(s.ids[l])
	t.a = uint64(s.logs.save(block(t.a), log))
	t.b = uint64(len(log))
}

func (s *shard) log(t *slot) []entry { return s.logs.entries(block(t.a))[:t.b] }

// find returns the slot of h, or nil.
func (s *shard) find(h uint64) *slot {
	slots := s.slots
	for i := s.home(h); ; i++ {
		if i == len(slots) {
			i = 0
		}
		t := &slots[i]
		if (t.tag^h)>>idBits == 0 && t.tag != 0 {
			return t
		}
		if t.tag == 0 {
			return nil
		}
	}
}

// home is where the search for h begins. It depends only on what a tag keeps of h.
func (s *shard) home(h uint64) int {
	home, _ := bits.Mul64(h&^idMask, uint64(len(s.slots)))
	return int(home)
}

// insert takes a new slot for h, which is not in the table. prepare has made room.
func (s *shard) insert(h uint64) *slot {
	i := s.home(h)
	for s.slots[i].tag != 0 {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	s.taken++
	t := &s.slots[i]
	t.tag = h &^ idMask
	return t
}
