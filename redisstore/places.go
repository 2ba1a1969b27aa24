package redisstore

// few is up to how many are looked for one by one.
const few = 8

// places are different things in the order in which they came.
type places[T comparable] struct {
	all []T
	at  map[T]int // of all, once they are not few
}

// of is the place of one, counted from 1. It gets the next if it has none.
func (p *places[T]) of(one T) int {
	if len(p.all) < few {
		for i, other := range p.all {
			if other == one {
				return i + 1
			}
		}
		p.all = append(p.all, one)
		return len(p.all)
	}
	if p.at == nil {
		p.at = make(map[T]int)
	}
	if len(p.at) == 0 {
		for i, other := range p.all {
			p.at[other] = i + 1
		}
	}
	at, ok := p.at[one]
	if !ok {
		p.all = append(p.all, one)
		at = len(p.all)
		p.at[one] = at
	}
	return at
}

func (p *places[T]) clear() {
	if len(p.at) > 0 {
		clear(p.at)
	}
	clear(p.all)
	p.all = p.all[:0]
}
