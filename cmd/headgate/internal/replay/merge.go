package replay

import "container/heap"

// merge merges logs, each of which is in the order of time, into one such stream. Records of the
// same time keep the order of the logs.
type merge struct {
	heads earliest[head]
}

// head is the next record of a log.
type head struct {
	record
	source *source
}

func (h head) before(o head) bool { //nolint:unused // by earliest
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
	heap.Init(&m.heads)
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
	switch {
	case !ok:
		heap.Pop(&m.heads)
	case len(m.heads) > 1:
		heap.Fix(&m.heads, 0)
	}
	return r, true, nil
}

// earliest is a heap, for container/heap, with the earliest element first.
type earliest[T interface{ before(o T) bool }] []T

func (e earliest[T]) Len() int           { return len(e) }
func (e earliest[T]) Less(i, j int) bool { return e[i].before(e[j]) }
func (e earliest[T]) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }

// Push adds v at the end.
func (e *earliest[T]) Push(v any) { *e = append(*e, v.(T)) } //nolint:forcetypeassert // it is a T

// Pop removes the last element.
func (e *earliest[T]) Pop() any {
	last := len(*e) - 1
	v := (*e)[last]
	*e = (*e)[:last]
	return v
}
