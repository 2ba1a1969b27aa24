package headgate

// What a shard remembers of other versions of limits, beside its slots: they have no
// room for it, and it is rare.

// marked is set in the word a of a slot that has something beside it. Logs have
// nothing beside them; their blocks have names without that bit.
const marked = 1 << 63

// besides holds it by the hash in the tags of the slots.
type besides struct {
	states map[uint64]beside
	peak   int // the most there were since the map was made
}

// beside is a version without a pointer in it.
type beside struct {
	slot // its tag has the index of the limit alone
	most int64
	left int64
}

// besides is the state beside t, whose limit is one of those, if there is one.
func (s *shard) besides(t *slot, limits []*rule) version {
	if t.a&marked == 0 {
		return version{}
	}
	b := s.beside.states[t.tag>>idBits]
	l := limits[b.tag]
	return version{l: l, state: b.state(l), most: b.most, left: b.left}
}

// putBeside replaces what is beside t.
func (s *shard) putBeside(t *slot, v version) {
	if v.l == nil {
		s.dropBeside(t)
		return
	}
	b := beside{slot: slot{tag: uint64(s.ids[v.l])}, most: v.most, left: v.left}
	b.put(v.l, v.state)
	if s.beside.states == nil {
		s.beside.states = make(map[uint64]beside)
	}
	s.beside.states[t.tag>>idBits] = b
	s.beside.peak = max(s.beside.peak, len(s.beside.states))
	t.a |= marked
}

func (s *shard) dropBeside(t *slot) {
	if t.a&marked == 0 {
		return
	}
	t.a &^= marked
	delete(s.beside.states, t.tag>>idBits)
	s.beside.shrink()
}

// shrink gives memory back, which a map does not by itself.
func (b *besides) shrink() {
	switch n := len(b.states); {
	case n == 0:
		*b = besides{}
	case n <= b.peak/4:
		fewer := make(map[uint64]beside, n)
		for h, v := range b.states {
			fewer[h] = v
		}
		b.states, b.peak = fewer, n
	}
}

// keepLimit registers the limit that is beside t anew, which had its place in limits.
func (s *shard) keepLimit(t *slot, limits []*rule) {
	if t.a&marked == 0 {
		return
	}
	b := s.beside.states[t.tag>>idBits]
	l := limits[b.tag]
	s.register(l)
	b.tag = uint64(s.ids[l])
	s.beside.states[t.tag>>idBits] = b
}
