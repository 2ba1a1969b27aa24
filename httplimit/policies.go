package httplimit

import (
	"maps"
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
	if last != nil {
		if len(*last) >= mostPolicies {
			return a
		}
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

// window is the time from an empty bucket to a full one, or the length of a window, in
// seconds, rounded up.
func window(l headgate.Limit) int64 {
	micros := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		rate, unit := l.Rate()
		micros = ceilDiv(l.Capacity()*unit, rate)
	case headgate.AlgorithmStepped:
		micros *= ceilDiv(l.Capacity(), l.Refill())
	}
	return ceilDiv(micros, 1_000_000)
}

// ceilDiv rounds a/b up. What a valid limit makes of its numbers is below 2^53.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
