package httplimit

import (
	"maps"
	"math"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// policies are the items of RateLimit-Policy that were made before, by their limits:
// a change makes a new map. A nil *policies knows none.
type policies struct {
	items atomic.Pointer[map[headgate.Limit]string]
}

// mostPolicies bounds what is remembered, lest limits made anew for each request do it
// for ever.
const mostPolicies = 1000

// appendList appends the List of RateLimit-Policy.
func (p *policies) appendList(text []byte, ds []headgate.Decision) []byte {
	for i := range ds {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, p.item(ds[i].Limit)...)
	}
	return text
}

// item is the item of l.
func (p *policies) item(l headgate.Limit) string {
	if p == nil {
		return newItem(l)
	}
	known := p.items.Load()
	if known != nil {
		if item, ok := (*known)[l]; ok {
			return item
		}
	}
	item := newItem(l)
	next := map[headgate.Limit]string{l: item}
	if known != nil && len(*known) < mostPolicies {
		maps.Copy(next, *known)
	}
	p.items.CompareAndSwap(known, &next) // or another one's is kept
	return item
}

func newItem(l headgate.Limit) string {
	text := appendItem(nil, true, l)
	text = appendParameter(text, ";q=", l.Capacity())
	return string(appendParameter(text, ";w=", window(l)))
}

// window is the time in which l grants its capacity anew, in seconds and at least 1.
func window(l headgate.Limit) int64 {
	w := l.Period().Seconds()
	if refill := l.Refill(); refill > 0 {
		w *= float64(l.Capacity()) / float64(refill)
	}
	return int64(max(math.Ceil(w-1e-9), 1))
}
