package headgate

import (
	"math/bits"
	"sync"

	"github.com/headgate/headgate/internal/clock"
)

// shard is one part of a Memory: an open-addressed table with linear probing,
// under a lock of its own.
type shard struct {
	// What every decision needs lies in one cache line.
	mu     sync.Mutex
	slots  []slot
	limits []*rule // the limits that slots were counted under

	taken int    // slots in use
	most  int    // bound on taken; the shared slots of newcomers come on top
	tries int    // keys that came since it was last rebuilt and found it full, or nearly
	crowd int    // slots that newcomers share
	guest filter // the newcomers that were granted something by those

	ids    map[*rule]uint16 // the places of limits
	beside besides          // states under other versions, of the slots marked so
	ahead  map[uint64]turns // by the hash in the tags of slots
	logs   arena
	clock  *clock.Clock

	_ [8]byte // to a whole number of cache lines
}

// slot is the state of one key under one limit, with no pointer in it.
type slot struct {
	tag uint64 // 48 bits of hash, 16 bits of index into limits; or 0 or vacated
	a   uint64 // at; of a log: its block
	b   uint64 // used, or used and previous; of a log: its length
}

const (
	idBits = 16
	maxIDs = 1 << idBits
	idMask = maxIDs - 1

	// vacated is the tag of a slot that is free again but may stand in the way of
	// others; no place has 0 in the bits of hash.
	vacated = 1
)

func (t *slot) vacant() bool { return t.tag>>idBits == 0 }

func (t *slot) state(l *rule) state {
	if l.algorithm == AlgorithmSlidingWindow {
		return state{at: int64(t.a &^ marked), used: int64(t.b >> 32), previous: int64(t.b & maxPair)}
	}
	return state{at: int64(t.a &^ marked), used: int64(t.b)}
}

func (t *slot) put(l *rule, next state) {
	t.a, t.b = uint64(next.at), uint64(next.used)
	if l.algorithm == AlgorithmSlidingWindow {
		t.b = uint64(next.used)<<32 | uint64(next.previous)
	}
}

// take decides one request for the place h, which prepare has found. It writes what
// follows if charge is set and the request is granted, and else what a change of
// limits made of the state, unless the request only looks. The shard is locked.
func (s *shard) take(l *rule, h uint64, o order, charge bool) verdict {
	t := s.find(h)
	now, cost := o.now, o.cost
	charge = charge && cost != 0
	if h == newcomers(l) && cost < 0 && o.ticket == 0 {
		charge = false // what one newcomer gives back another may have taken
	}
	if q, kept := s.turnsOf(t, l, h); kept || o.wait > 0 || o.ticket != 0 {
		return s.takeTurn(t, l, h, q, o, charge)
	}
	if l.algorithm == AlgorithmSlidingLog {
		return s.takeLog(t, l, h, now, cost, charge)
	}
	was, other, adopted := s.recall(t, l, h, now)
	next, beside, v := l.decideBeside(was, other, now, cost, charge)
	switch {
	case charge && v.granted():
		s.write(t, l, h, next, beside)
	case adopted && cost != 0:
		s.write(t, l, h, was, other)
	}
	return v
}

// recall is the state in t, adopted to l, or if t is nil that with which the key of
// place h begins; and that of another version.
func (s *shard) recall(t *slot, l *rule, h uint64, now int64) (was state, other version, adopted bool) {
	if t == nil {
		t = s.shared(l, h)
	}
	if t == nil {
		return state{}, version{}, false
	}
	old := s.limits[t.tag&idMask]
	was, other = t.state(old), s.versionBeside(t, s.limits)
	if old == l {
		return was, other, false
	}
	return l.adopt(old, was, other, now)
}

// write puts next under l, and what is beside it, into the place t of h, or into a new
// one if t is nil.
func (s *shard) write(t *slot, l *rule, h uint64, next state, other version) {
	if t == nil {
		if next.used+next.previous == 0 && other.l == nil {
			return
		}
		t = s.insertFor(l, h)
	}
	if s.limits[t.tag&idMask] != l {
		t.tag = t.tag&^idMask | uint64(s.ids[l])
	}
	if next.used+next.previous == 0 {
		next = state{}
	}
	s.putBeside(t, other)
	mark := t.a & marked
	t.put(l, next)
	t.a |= mark
}

// takeLog is take for a sliding log, whose entries lie in the arena.
func (s *shard) takeLog(t *slot, l *rule, h uint64, now, cost int64, charge bool) verdict {
	log, keeper, adopted := s.recallLog(t, l, h, now)
	v := slidingLog(l, log, now, cost, charge)
	switch {
	case charge && v.granted():
		log, keeper = stillKept(log, keeper, l, now)
		s.writeLog(t, keeper, h, log, now, l.ask(cost), mostKept(log, keeper, l))
	case adopted && cost != 0:
		s.writeLog(t, keeper, h, log, now, 0, maxLog)
	}
	return v
}

// recallLog is the log in t, adopted to l, or if t is nil that with which the key of
// place h begins.
func (s *shard) recallLog(t *slot, l *rule, h uint64, now int64) (log []entry, keeper *rule, adopted bool) {
	if t == nil {
		t = s.shared(l, h)
	}
	if t == nil {
		return nil, l, false
	}
	return l.adoptLog(s.limits[t.tag&idMask], s.log(t), now)
}

// writeLog puts what is left of a log, kept by l, into the place t of h, or into a new
// one if t is nil, and records cost at now.
func (s *shard) writeLog(t *slot, l *rule, h uint64, log []entry, now, cost, most int64) {
	if t == nil {
		if len(log) == 0 && cost <= 0 {
			return
		}
		t = s.insertFor(l, h)
	}
	t.tag = t.tag&^idMask | uint64(s.ids[l])
	room := s.logs.entries(block(t.a))
	if len(log) > len(room) {
		t.a = uint64(s.logs.save(block(t.a), log))
		room = s.logs.entries(block(t.a))
	}
	log = latest(record(room[:copy(room, log)], now, cost), most)
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
		if (t.tag^h)>>idBits == 0 {
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

// insertFor is insert, and counts the slots that newcomers share.
func (s *shard) insertFor(l *rule, h uint64) *slot {
	if h == newcomers(l) {
		s.crowd++
	}
	return s.insert(h)
}

// insert takes a slot for h, which is not in the table. prepare has made room.
func (s *shard) insert(h uint64) *slot {
	i := s.home(h)
	for !s.slots[i].vacant() {
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	t := &s.slots[i]
	if t.tag == 0 {
		s.taken++
	}
	t.tag = h &^ idMask
	return t
}
