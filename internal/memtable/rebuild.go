package memtable

import "github.com/headgate/headgate/internal/algorithm"

const (
	firstSlots = 16

	// A shard looks for limits that are not in use, in a pass over the table, when it has these
	// and twice as many as were in use the last time.
	spareLimits = 64
)

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

// expired reports whether t, whose limit is one of limits, is in its initial state.
func (s *Shard) expired(t *slot, limits []*algorithm.Rule, now int64) bool {
	l := limits[t.tag&idMask]
	return t.empty() || l.Initial(s.stored(t, l), now)
}
