package headgate

import "maps"

// What a shard keeps of other versions of limits, beside its slots: they have no room
// for it, and it is rare.

// marked is set in the word a of a slot that has something beside it. Logs are not
// marked: each of them is looked up.
const marked = 1 << 63

// besides holds it by the hash in the tags of the slots.
type besides struct {
	kept map[uint64]keptVersion
	peak int // the most there were since the map was made
}

// keptVersion is a version with no pointer in it.
type keptVersion struct {
	slot // its tag has the index of the limit alone, and whether most is sure
	most int64
	left int64
}

const sure = 1 << idBits // in keptVersion.tag

// versionBeside is what lies beside t, whose limit is one of those.
func (s *shard) versionBeside(t *slot, limits []*rule) version {
	if t.a&marked == 0 {
		return version{}
	}
	b, kept := s.beside.kept[t.tag>>idBits]
	if !kept {
		return version{}
	}
	l := limits[b.tag&idMask]
	return version{l: l, state: b.state(l), most: b.most, sure: b.tag&sure != 0, left: b.left}
}

// putBeside replaces what is beside t.
func (s *shard) putBeside(t *slot, v version) {
	if v.l == nil {
		s.dropBeside(t)
		return
	}
	b := keptVersion{slot: slot{tag: uint64(s.ids[v.l])}, most: v.most, left: v.left}
	if v.sure {
		b.tag |= sure
	}
	b.put(v.l, v.state)
	if s.beside.kept == nil {
		s.beside.kept = make(map[uint64]keptVersion)
	}
	s.beside.kept[t.tag>>idBits] = b
	s.beside.peak = max(s.beside.peak, len(s.beside.kept))
	t.a |= marked
}

func (s *shard) dropBeside(t *slot) {
	if t.a&marked == 0 {
		return
	}
	t.a &^= marked
	delete(s.beside.kept, t.tag>>idBits)
	s.beside.shrink()
}

// shrink gives memory back, which a map does not by itself.
func (b *besides) shrink() {
	switch n := len(b.kept); {
	case n == 0:
		*b = besides{}
	case n <= b.peak/4:
		fewer := make(map[uint64]keptVersion, n)
		maps.Copy(fewer, b.kept)
		b.kept, b.peak = fewer, n
	}
}

// keepLimit gives the limit of what lies beside t, which had its place in limits, a new one.
func (s *shard) keepLimit(t *slot, limits []*rule) {
	if t.a&marked == 0 {
		return
	}
	b, kept := s.beside.kept[t.tag>>idBits]
	if !kept {
		return
	}
	l := limits[b.tag&idMask]
	s.register(l)
	b.tag = b.tag&^idMask | uint64(s.ids[l])
	s.beside.kept[t.tag>>idBits] = b
}
