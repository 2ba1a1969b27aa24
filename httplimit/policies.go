package httplimit

import (
	"maps"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// advertised is what the fields say of a limit, always the same.
type advertised struct {
	item     string // of RateLimit-Policy
	capacity string
}

// policies are what was said of limits before: a new one makes a new map. A nil
// *policies knows none.
type policies struct {
	last atomic.Pointer[map[headgate.Limit]advertised]
}

// mostPolicies bounds what is remembered, lest limits made anew for each request do it
// for ever.
const mostPolicies = 1000

// of is what the fields say of l.
func (p *policies) of(l headgate.Limit) advertised {
	if p == nil {
		return advertise(l)
	}
	last := p.last.Load()
	if last != nil {
		if a, ok := (*last)[l]; ok {
			return a
		}
	}
	a := advertise(l)
	next := map[headgate.Limit]advertised{l: a}
	if last != nil && len(*last) < mostPolicies {
		maps.Copy(next, *last)
	}
	p.last.CompareAndSwap(last, &next) // or another one's is kept
	return a
}

// appendList appends the List of RateLimit-Policy.
func (p *policies) appendList(text []byte, ds []headgate.Decision) []byte {
	for i := range ds {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, p.of(ds[i].Limit).item...)
	}
	return text
}

func advertise(l headgate.Limit) advertised {
	text := appendItem(nil, true, l)
	text = appendParameter(text, ";q=", l.Capacity())
	text = appendParameter(text, ";w=", window(l))
	return advertised{string(text), strconv.FormatInt(l.Capacity(), 10)}
}

// window is the time in which l grants its capacity anew, in seconds and at least 1.
func window(l headgate.Limit) int64 {
	w := l.Period().Seconds()
	if refill := l.Refill(); refill > 0 {
		w *= float64(l.Capacity()) / float64(refill)
	}
	return int64(max(math.Ceil(w-1e-9), 1))
}
