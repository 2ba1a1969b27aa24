package headgate

// What a shard does for a key it does not know, or not under this limit.

const (
	firstSlots = 16
	spareSlots = 16 // for the slots that newcomers share when the table is full
)

// prepare makes sure that l has an id, and finds the place for a key: its own, h,
// which it has or has room to take, or the place that newcomers under l share.
// pending is how many keys may take a slot before this one does.
func (s *shard) prepare(l *rule, h uint64, now int64, pending int) (uint64, error) {
	now = min(now, s.clock.Micros()) // a time that has not come makes nothing stale
	if !s.register(l) && !s.rebuild(l, now, len(s.slots)) {
		return 0, ErrFull
	}
	if s.find(h) != nil || s.room(l, h, now, pending) {
		return h, nil
	}
	if s.taken+pending >= len(s.slots)-1 { // one is never taken, to end every search
		if s.rebuild(l, now, len(s.slots)); s.taken+pending >= len(s.slots)-1 {
			return 0, ErrFull
		}
	}
	if s.recycle(h, now) {
		return h, nil
	}
	return newcomers(l), nil
}

// newcomers is the place shared under l by keys that found the table full.
func newcomers(l *rule) uint64 {
	return l.identity*0x9e3779b97f4a7c15 | 1<<idBits
}

// shared is the slot that newcomers share under l, if the key of place h was granted
// something by it, or nil. Such a key begins with all that newcomers have consumed
// together when it gets a place of its own.
func (s *shard) shared(l *rule, h uint64) *slot {
	if s.crowd == 0 || !s.guest.has(h) {
		return nil
	}
	return s.find(newcomers(l))
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
// that is done once for so many new keys, or if a sample promises that it is worth it.
func (s *shard) room(l *rule, h uint64, now int64, pending int) bool {
	s.tries++
	if s.taken+pending < s.bound() {
		return true
	}
	if most := s.mostSlots(); len(s.slots) < most {
		s.rebuild(l, now, min(2*(len(s.slots)+pending), most))
	} else if s.tries > len(s.slots)/16 || s.worthRebuilding(h, now) {
		s.rebuild(l, now, len(s.slots))
	}
	return s.taken+pending < s.bound()
}

// worthRebuilding says whether an eighth of some slots beginning at the home of h, which
// is as good as random, is stale or vacated.
func (s *shard) worthRebuilding(h uint64, now int64) bool {
	const sample = 32
	free := 0
	for i := range min(sample, len(s.slots)) {
		t := &s.slots[(s.home(h)+i)%len(s.slots)]
		if t.tag != 0 && (t.vacant() || s.stale(t, s.limits, now)) {
			free++
		}
	}
	return free >= sample/8
}

// bound is how many slots of the table may be taken: nine in eleven, for short probes.
func (s *shard) bound() int { return min(len(s.slots)/11*9, s.most) }

func (s *shard) mostSlots() int { return (s.most/9+1)*11 + spareSlots }

// rebuild moves what is not stale into a table of the given size, and forgets
// the limits that no slot is counted under, other than next. It says whether
// there was an id for that.
func (s *shard) rebuild(next *rule, now int64, size int) bool {
	slots, limits := s.slots, s.limits
	s.slots, s.limits = make([]slot, size), nil
	s.taken, s.tries, s.crowd = 0, 0, 0
	clear(s.ids)
	for i := range slots {
		old := &slots[i]
		if old.vacant() {
			continue
		}
		l := limits[old.tag&idMask]
		if s.stale(old, limits, now) {
			s.drop(old, l)
			continue
		}
		s.register(l)
		s.keepLimit(old, limits)
		s.keepLimitsAhead(old)
		t := s.insert(old.tag)
		t.tag |= uint64(s.ids[l])
		if (t.tag^newcomers(l))>>idBits == 0 {
			s.crowd++
		}
		t.a, t.b = old.a, old.b
	}
	if s.crowd == 0 {
		s.guest = nil
	}
	return s.register(next)
}

// recycle vacates a stale slot among those that a search for h passes, if there is
// one.
func (s *shard) recycle(h uint64, now int64) bool {
	for i := s.home(h); s.slots[i].tag != 0; {
		t := &s.slots[i]
		if t.vacant() {
			return true
		}
		if s.stale(t, s.limits, now) {
			l := s.limits[t.tag&idMask]
			s.drop(t, l)
			if (t.tag^newcomers(l))>>idBits == 0 {
				s.crowd--
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

// stale says whether t, whose limit is one of those, is as at first sight, and what is
// beside it.
func (s *shard) stale(t *slot, limits []*rule, now int64) bool {
	if q, kept := s.ahead[t.tag>>idBits]; kept && !q.finished(now) {
		return false
	}
	l := limits[t.tag&idMask]
	if l.algorithm == AlgorithmSlidingLog {
		return slidingLog(l, s.log(t), now, 0, false).reset == 0
	}
	if l.since(t.state(l), now) != (state{}) {
		return false
	}
	other := s.versionBeside(t, limits)
	return other.l == nil || other.at <= now && other.l.since(other.state, now) == (state{})
}

// drop empties t.
func (s *shard) drop(t *slot, l *rule) {
	if l.algorithm == AlgorithmSlidingLog {
		s.logs.release(block(t.a))
	} else {
		s.dropBeside(t)
	}
	delete(s.ahead, t.tag>>idBits)
	t.a, t.b = 0, 0
}

func (s *shard) reset(h uint64) {
	if t := s.find(h); t != nil {
		s.drop(t, s.limits[t.tag&idMask])
	}
}
