package headgate

// What a shard does for a key it does not know, or not under this limit.

const (
	firstSlots = 16
	spareSlots = 16 // for the slots that newcomers share when the table is full
)

// prepare makes sure that l has an id and that h has a place: the slot it has,
// nil if there is room for a new one, or the slot that newcomers under l share.
func (s *shard) prepare(l *rule, h uint64, now int64) (*slot, uint64, error) {
	now = min(now, s.clock.micros()) // a time that has not come makes nothing stale
	if !s.register(l) && !s.rebuild(l, now, len(s.slots)) {
		return nil, 0, ErrFull
	}
	if t := s.find(h); t != nil {
		return t, h, nil
	}
	if s.room(l, now) {
		return nil, h, nil
	}
	if t := s.recycle(h, now); t != nil {
		t.tag = h&^idMask | uint64(s.ids[l])
		return t, h, nil
	}
	h = newcomers(l)
	t := s.find(h)
	if t == nil && s.taken >= len(s.slots)-1 {
		return nil, 0, ErrFull
	}
	return t, h, nil
}

// newcomers is the place shared under l by keys that found the table full.
func newcomers(l *rule) uint64 {
	return l.identity*0x9e3779b97f4a7c15 | 1<<idBits
}

// register gives l an id, unless all are in use.
func (s *shard) register(l *rule) bool {
	if _, known := s.ids[l]; known {
		return true
	}
	if len(s.limits) == maxIDs {
		return false
	}
	if s.ids == nil {
		s.ids = make(map[*rule]uint16)
	}
	s.ids[l] = uint16(len(s.limits))
	s.limits = append(s.limits, l)
	return true
}

// room says whether a new key may have a slot, after growing the table or
// dropping what is stale if need be. To drop it costs a pass over the table, so
// that is done once in so many tries.
func (s *shard) room(l *rule, now int64) bool {
	if s.taken < s.bound() {
		return true
	}
	s.tries++
	if most := s.mostSlots(); len(s.slots) < most {
		s.rebuild(l, now, min(2*len(s.slots), most))
	} else if s.tries > len(s.slots)/8 {
		s.rebuild(l, now, len(s.slots))
	}
	return s.taken < s.bound()
}

// bound is how many slots of the table may be taken: four in five, for short probes.
func (s *shard) bound() int { return min(len(s.slots)/5*4, s.most) }

func (s *shard) mostSlots() int { return s.most/4*5 + spareSlots }

// rebuild moves what is not stale into a table of the given size, and forgets
// the limits that no slot is counted under, other than next. It says whether
// there was an id for that.
func (s *shard) rebuild(next *rule, now int64, size int) bool {
	slots, limits := s.slots, s.limits
	s.slots, s.limits = make([]slot, size), nil
	s.taken, s.tries = 0, 0
	clear(s.ids)
	for i := range slots {
		old := &slots[i]
		if old.tag == 0 {
			continue
		}
		l := limits[old.tag&idMask]
		if s.stale(old, l, now) {
			s.drop(old, l)
			continue
		}
		s.register(l)
		t := s.insert(old.tag)
		t.tag |= uint64(s.ids[l])
		t.a, t.b = old.a, old.b
	}
	return s.register(next)
}

// recycle finds a stale slot among those that a search for h passes.
func (s *shard) recycle(h uint64, now int64) *slot {
	for i := s.home(h); s.slots[i].tag != 0; {
		t := &s.slots[i]
		if l := s.limits[t.tag&idMask]; s.stale(t, l, now) {
			s.drop(t, l)
			return t
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	return nil
}

// stale says whether t is as at first sight.
func (s *shard) stale(t *slot, l *rule, now int64) bool {
	if l.algorithm == AlgorithmSlidingLog {
		return slidingLog(l, s.log(t), now, 0, false).reset == 0
	}
	_, v := l.decide(t.state(l), now, 0, false)
	return v.reset == 0
}

// drop empties t.
func (s *shard) drop(t *slot, l *rule) {
	if l.algorithm == AlgorithmSlidingLog {
		s.logs.release(block(t.a))
	}
	t.a, t.b = 0, 0
}

func (s *shard) reset(h uint64) {
	if t := s.find(h); t != nil {
		s.drop(t, s.limits[t.tag&idMask])
	}
}
