// Package memtable holds one shard of the store in memory: a hash table of states with no
// pointer in it, bounded in size.
package memtable

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/headgate/headgate/internal/algorithm"
)

// Shard is one part of the store: an open-addressed table with linear probing, under a lock
// of its own, which its callers hold.
type Shard struct {
	// What every decision needs lies in one cache line.
	sync.Mutex
	slots  []slot
	limits []*algorithm.Rule // the limits that slots were charged under

	taken     int    // slots in use
	max       int    // bound on taken; overflow slots come on top
	tries     int    // new keys since the last rebuild that found the table full, or nearly
	overflows int32  // overflow slots in use
	due       int32  // with how many limits those that are not in use are forgotten
	charged   filter // the keys that were charged to an overflow slot

	ids     map[*algorithm.Rule]uint16 // the index in limits
	logs    logs
	pending int // slots that requests of a group may take
}

// slot is the state of one key under one limit.
type slot struct {
	tag uint64 // 48 bits of hash, 16 bits of index into limits; or 0, or vacated
	a   uint64 // the marks, and the time; of a log: the marks, its length and its block
	b   uint64 // what is used; of a log: the time
}

const (
	idBits = 16
	maxIDs = 1 << idBits
	idMask = maxIDs - 1

	// vacated is the tag of a slot that is free again but may be part of the way to
	// others; no hash has 0 in the bits that a tag keeps.
	vacated = 1

	// booked is set in the word a of a state whose time was booked ahead.
	booked = 1 << 63
	// late is set as well if a cancel must not move that time back. A time has 53 bits, and
	// the length of a log has 18, above the 44 of its block.
	late  = 1 << 62
	marks = booked | late
)

// Init makes s an empty shard for at most that many keys.
func (s *Shard) Init(keys int) { s.max, s.slots = keys, make([]slot, firstSlots) }

// Keys is the number of slots in use.
func (s *Shard) Keys() int { return s.taken }

// Hash is the slot of a key with that hash under l.
func Hash(key uint64, l *algorithm.Rule) uint64 { return key ^ l.Hash | 1<<idBits }

// TakePlain decides the request of most callers: a key that is known, under the limit that
// it was last charged under, with nothing booked ahead. It reports false if this is another.
func (s *Shard) TakePlain(
	l *algorithm.Rule, h uint64, now, cost int64,
) (v algorithm.Verdict, ok bool) {
	t := s.find(h)
	if t == nil || s.limits[t.tag&idMask] != l || t.a&booked != 0 ||
		l.Algorithm == algorithm.SlidingLog {
		return v, false
	}
	charge := algorithm.Nothing
	if cost != 0 {
		charge = algorithm.Grants
	}
	next, v := l.Decide(t.state(l), now, cost, charge)
	v.Remaining = max(v.Remaining, 0)
	if cost != 0 && v.Granted() {
		t.put(l, next)
	}
	return v, true
}

// Take decides o for the slot h, which Prepare has returned, and charges it if charge is
// set and it is granted.
func (s *Shard) Take(
	l *algorithm.Rule, h uint64, o algorithm.Order, charge bool,
) algorithm.Verdict {
	t := s.find(h)
	forced := o.Force
	if h == overflow(l) {
		charge = charge && o.Cost >= 0 // another key may have used these tokens
		o.Force = false                // and would have to pay for these
	}
	next, v, changed := l.Take(s.account(t, l, h), o, charge)
	if changed {
		s.write(t, l, h, next)
	}
	if forced && !v.Granted() { // of an overflow slot as well
		v.Remaining = min(v.Remaining, 0)
	}
	return v
}

// Shared marks the key of hash own as charged to the overflow slot.
func (s *Shard) Shared(own uint64) { s.charged.add(own) }

// account is what is kept in t, as l counts it, or if t is nil what the key begins with.
func (s *Shard) account(t *slot, l *algorithm.Rule, h uint64) algorithm.Account {
	from := t
	if t == nil {
		from = s.shared(l, h)
	}
	if from == nil || from.empty() {
		return algorithm.Account{}
	}
	old := s.limits[from.tag&idMask]
	k := s.stored(from, old)
	k.State, k.Scaled = l.Adopt(old, k.State)
	if t == nil {
		k.Log = slices.Clone(k.Log) // the overflow slot keeps its own
	}
	return k
}

// stored is what is kept in t, which was charged under l.
func (s *Shard) stored(t *slot, l *algorithm.Rule) algorithm.Account {
	k := algorithm.Account{Booked: t.a&booked != 0, Late: t.a&late != 0}
	if l.Algorithm == algorithm.SlidingLog {
		k.Log, k.At = s.log(t), int64(t.b)
		return k
	}
	k.State = t.state(l)
	return k
}

// write puts k under l into the slot t of hash h, or into a new one if t is nil.
func (s *Shard) write(t *slot, l *algorithm.Rule, h uint64, k algorithm.Account) {
	if t == nil {
		t = s.insert(h)
		if h == overflow(l) {
			s.overflows++
		}
	}
	t.tag = t.tag&^idMask | uint64(s.ids[l])
	if l.Algorithm == algorithm.SlidingLog {
		s.putLog(t, k)
	} else {
		t.put(l, k.State)
	}
	if k.Booked {
		t.a |= booked
	}
	if k.Late {
		t.a |= late
	}
}

// state is what l, under which it was charged, reads in t.
func (t *slot) state(l *algorithm.Rule) algorithm.State {
	at := int64(t.a &^ marks)
	switch l.Algorithm {
	case algorithm.SlidingWindow:
		return algorithm.State{At: at, Used: int64(t.b >> 32), Previous: int64(t.b & (1<<32 - 1))}
	case algorithm.Stepped:
		used, since := l.Unpack(int64(t.b))
		return algorithm.State{At: at, Used: used, Step: at - since}
	default:
		return algorithm.State{At: at, Used: int64(t.b)}
	}
}

func (t *slot) put(l *algorithm.Rule, next algorithm.State) {
	t.a, t.b = uint64(next.At), uint64(next.Used)
	switch l.Algorithm {
	case algorithm.SlidingWindow:
		t.b = uint64(next.Used)<<32 | uint64(next.Previous)
	case algorithm.Stepped:
		t.b = uint64(l.Pack(next.Used, next.At-next.Step))
	}
}

func (t *slot) vacant() bool { return t.tag>>idBits == 0 }

func (t *slot) empty() bool { return t.a == 0 && t.b == 0 }

func (t *slot) block() block { return block(t.a & (1<<blockBits - 1)) }

func (s *Shard) log(t *slot) []algorithm.Entry {
	return s.logs.entries(t.block())[:t.a&^marks>>blockBits]
}

func (s *Shard) putLog(t *slot, k algorithm.Account) {
	b := s.logs.save(t.block(), k.Log)
	t.a, t.b = uint64(len(k.Log))<<blockBits|uint64(b), uint64(k.At)
}

// find returns the slot of h, or nil.
func (s *Shard) find(h uint64) *slot {
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
func (s *Shard) home(h uint64) int {
	home, _ := bits.Mul64(h&^idMask, uint64(len(s.slots)))
	return int(home)
}

// insert takes a slot for h, which is not in the table. Prepare has made room.
func (s *Shard) insert(h uint64) *slot {
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

// Reset makes the key of h one in its initial state.
func (s *Shard) Reset(h uint64) {
	if t := s.find(h); t != nil {
		s.drop(t, s.limits[t.tag&idMask])
	}
}

// drop empties t, which was charged under l.
func (s *Shard) drop(t *slot, l *algorithm.Rule) {
	if l.Algorithm == algorithm.SlidingLog {
		s.logs.release(t.block())
	}
	t.a, t.b = 0, 0
}
