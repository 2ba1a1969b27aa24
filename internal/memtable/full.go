package memtable

import "github.com/headgate/headgate/internal/algorithm"

// A full shard is one whose slots all belong to keys that are not in their initial state. New keys
// then share one slot for each limit: the overflow slot. When a key that was charged to it gets a
// slot of its own, it begins with all that the overflow slot has used: a flood gets no fresh
// budgets.

// Prepare makes sure that l has an index, and finds the slot for a key. That is its own, h, if it
// has one or there is room for one, and otherwise the overflow slot of l. States that have expired
// at now may be dropped, so now must not be ahead of the clock. It reports false if even the
// overflow slot has no room.
func (s *Shard) Prepare(l *algorithm.Rule, h uint64, now int64) (uint64, bool) {
	known := s.Register(l)
	if (!known || len(s.limits) > int(s.due)) && !s.rebuild(l, now, len(s.slots)) {
		return 0, false
	}
	if s.Known(h) || s.room(l, h, now) {
		return h, true
	}
	if s.taken+s.pending >= len(s.slots)-1 { // one slot stays free, to end every search
		if s.rebuild(l, now, len(s.slots)); s.taken+s.pending >= len(s.slots)-1 {
			return 0, false
		}
	}
	if s.recycle(h, now) {
		return h, true
	}
	return overflow(l), true
}

// Hold counts the slot that one of a group of n requests may take for h after others are prepared,
// unless there is room for all. An expired slot counts, because it may be dropped until then.
func (s *Shard) Hold(h uint64, now int64, n int) {
	if s.taken+n < s.bound() {
		return
	}
	if t := s.find(h); t == nil || s.expired(t, s.limits, now) {
		s.pending++
	}
}

// EndGroup sets the count of Hold back to 0.
func (s *Shard) EndGroup() { s.pending = 0 }

// room reports whether a new key may have a slot. If a sample of a full table shows that half has
// expired, it drops the expired states; otherwise it grows the table. A drop costs a pass over the
// table. So at its largest size there is one only after as many new keys as a 16th of the slots, or
// if an eighth of the sample has expired.
func (s *Shard) room(l *algorithm.Rule, h uint64, now int64) bool {
	s.tries++
	if s.taken+s.pending < s.bound() {
		return true
	}
	free, most := s.freeInSample(h, now), s.maxSlots()
	due := s.tries > len(s.slots)/16 || free >= sample/8
	if free >= sample/2 || due && len(s.slots) == most {
		s.rebuild(l, now, len(s.slots))
	}
	if s.taken+s.pending >= s.bound() && len(s.slots) < most {
		s.rebuild(l, now, min(2*(len(s.slots)+s.pending), most))
	}
	return s.taken+s.pending < s.bound()
}

// sample is how many slots are looked at to estimate how many are free.
const sample = 32

// freeInSample counts the slots that are expired or vacated in a sample of slots that starts at h's
// home slot, which is effectively random.
func (s *Shard) freeInSample(h uint64, now int64) (free int) {
	for i := range min(sample, len(s.slots)) {
		t := &s.slots[(s.home(h)+i)%len(s.slots)]
		if t.tag != 0 && (t.vacant() || s.expired(t, s.limits, now)) {
			free++
		}
	}
	return free
}

// bound is how many slots of the table may be taken: nine in eleven, for short probes.
func (s *Shard) bound() int { return min(len(s.slots)/11*9, s.max) }

// spareSlots are for overflow slots.
const spareSlots = 16

func (s *Shard) maxSlots() int { return (s.max/9+1)*11 + spareSlots }

// recycle vacates an expired slot among those that a search for h passes, if there is one.
func (s *Shard) recycle(h uint64, now int64) bool {
	for i := s.home(h); s.slots[i].tag != 0; {
		t := &s.slots[i]
		if t.vacant() {
			return true
		}
		if s.expired(t, s.limits, now) {
			l := s.limits[t.tag&idMask]
			s.drop(t, l)
			if t.isOverflow(l) {
				s.overflows--
			}
			t.tag = vacated
			return true
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	return false
}

// overflow is the slot that new keys share under l.
func overflow(l *algorithm.Rule) uint64 {
	return l.Hash*0x9e3779b97f4a7c15 | 1<<idBits
}

func (t *slot) isOverflow(l *algorithm.Rule) bool { return (t.tag^overflow(l))>>idBits == 0 }

// shared returns the overflow slot of l if the key of hash h was charged to it, or nil.
func (s *Shard) shared(l *algorithm.Rule, h uint64) *slot {
	if s.overflows == 0 || !s.charged.has(h) {
		return nil
	}
	return s.find(overflow(l))
}

// Begins returns the slot whose account a key of hash h begins with: its own, or the overflow slot.
func (s *Shard) Begins(l *algorithm.Rule, h uint64) uint64 {
	if s.charged.has(h) && !s.Known(h) {
		return overflow(l)
	}
	return h
}
