package memtable

import "github.com/headgate/headgate/internal/algorithm"

// What a shard does for a key that it does not know, or not under this limit.

const (
	firstSlots = 16
	spareSlots = 16 // for overflow slots when the table is full

	// A shard looks for limits that are not in use, in a pass over the table, when it has these
	// and twice as many as were in use the last time.
	spareLimits = 64
)

// Prepare makes sure that l has an index, and finds the slot for a key: its own, h, which
// it has or has room to take, or the overflow slot of l. What has expired at now may be dropped:
// that must not be ahead of the clock. It reports false if not even the overflow slot has room.
func (s *Shard) Prepare(l *algorithm.Rule, h uint64, now int64) (uint64, bool) {
	known := s.Register(l)
	if (!known || len(s.limits) > int(s.due)) && !s.rebuild(l, now, len(s.slots)) {
		return 0, false
	}
	if s.Known(h) || s.room(l, h, now) {
		return h, true
	}
	if s.taken+s.pending >= len(s.slots)-1 { // one is never taken, to end every search
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

// EndGroup ends what Hold counts.
func (s *Shard) EndGroup() { s.pending = 0 }

// Known reports whether the slot of h is in use.
func (s *Shard) Known(h uint64) bool { return s.find(h) != nil }

// Register gives l an index, and reports false if all are in use.
func (s *Shard) Register(l *algorithm.Rule) bool {
	if _, known := s.ids[l]; known {
		return true
	}
	if len(s.limits) == maxIDs {
		return false
	}
	if s.ids == nil {
		s.ids = make(map[*algorithm.Rule]uint16)
	}
	s.ids[l] = uint16(len(s.limits))
	s.limits = append(s.limits, l)
	return true
}

// room reports whether a new key may have a slot. If need be it drops what has expired, and grows
// the table unless that is half of it. To drop costs a pass over the table, so if the table cannot
// grow it is done once in as many new keys as a 16th of the slots, or if an eighth has expired.
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

func (s *Shard) maxSlots() int { return (s.max/9+1)*11 + spareSlots }

// rebuild moves what has not expired into a table of the given size, and forgets the limits
// that no slot was charged under, other than next. It reports whether next has an index.
func (s *Shard) rebuild(next *algorithm.Rule, now int64, size int) bool {
	slots, limits := s.slots, s.limits
	s.slots, s.limits = make([]slot, size), nil
	s.taken, s.tries, s.overflows = 0, 0, 0
	clear(s.ids)
	for i := range slots {
		old := &slots[i]
		if old.vacant() {
			continue
		}
		l := limits[old.tag&idMask]
		if s.expired(old, limits, now) {
			s.drop(old, l)
			continue
		}
		s.Register(l)
		t := s.insert(old.tag)
		t.tag |= uint64(s.ids[l])
		if t.isOverflow(l) {
			s.overflows++
		}
		t.a, t.b = old.a, old.b
	}
	if s.overflows == 0 {
		s.charged = nil
	}
	s.due = int32(2*len(s.limits) + spareLimits)
	return s.Register(next)
}

// Rebuild rebuilds the table, as happens when it grows.
func (s *Shard) Rebuild() {
	if len(s.limits) > 0 {
		s.rebuild(s.limits[0], 0, len(s.slots))
	}
}

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

// expired reports whether t, whose limit is one of limits, is in its initial state.
func (s *Shard) expired(t *slot, limits []*algorithm.Rule, now int64) bool {
	l := limits[t.tag&idMask]
	return t.empty() || l.Initial(s.stored(t, l), now)
}
