package replay

// merge merges logs, each of which is in the order of time, into one such stream. Records of the
// same time keep the order of the logs.
type merge struct {
	heads []head // a heap, the earliest on top
}

// head is the next record of a log.
type head struct {
	record
	source *source
}

func (h head) before(o head) bool {
	return h.at < o.at || h.at == o.at && h.source.index < o.source.index
}

// newMerge reads the first record of each source.
func newMerge(sources []*source) (*merge, error) {
	m := new(merge)
	for i, s := range sources {
		s.index = i
		r, ok, err := s.next()
		if err != nil {
			return nil, err
		}
		if ok {
			m.heads = append(m.heads, head{r, s})
		}
	}
	for i := len(m.heads)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
	return m, nil
}

// next returns the earliest remaining record. ok is false after the last.
func (m *merge) next() (r record, ok bool, err error) {
	if len(m.heads) == 0 {
		return record{}, false, nil
	}
	top := &m.heads[0]
	r = top.record
	top.record, ok, err = top.source.next()
	if err != nil {
		return record{}, false, err
	}
	if !ok {
		last := len(m.heads) - 1
		m.heads[0] = m.heads[last]
		m.heads = m.heads[:last]
	}
	m.sink(0)
	return r, true, nil
}

// sink moves the head at i down the heap.
func (m *merge) sink(i int) {
	for {
		least := i
		for down := 2*i + 1; down <= 2*i+2 && down < len(m.heads); down++ {
			if m.heads[down].before(m.heads[least]) {
				least = down
			}
		}
		if least == i {
			return
		}
		m.heads[i], m.heads[least] = m.heads[least], m.heads[i]
		i = least
	}
}
