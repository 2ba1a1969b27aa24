package httplimit

import (
	"maps"
	"strconv"
	"sync/atomic"

	"github.com/headgate/headgate"
)

// policy is the text of the fields that is the same for every response under a limit.
// All responses share the slices, whose capacity is their length, so that a handler that
// adds a value copies them.
type policy struct {
	policy    []string // of RateLimit-Policy
	limit     []string // of X-RateLimit-Limit
	remaining string   // of RateLimit, up to the number
}

// policies remembers the policy of each limit. A nil *policies remembers none.
type policies struct {
	last atomic.Pointer[map[headgate.Limit]*policy]
}

// maxPolicies bounds what is remembered, in case a program makes limits for each request.
const maxPolicies = 1000

// of returns the policy of l.
func (p *policies) of(l headgate.Limit) *policy {
	if p == nil {
		return newPolicy(l)
	}
	last := p.last.Load()
	if last != nil {
		if known, ok := (*last)[l]; ok {
			return known
		}
	}
	a := newPolicy(l)
	next := map[headgate.Limit]*policy{l: a}
	if last != nil {
		if len(*last) >= maxPolicies {
			return a
		}
		maps.Copy(next, *last)
	}
	p.last.CompareAndSwap(last, &next) // or the map of another caller is kept
	return a
}

// appendPolicies appends the List of RateLimit-Policy.
func (p *policies) appendPolicies(text []byte, ds []headgate.Decision) []byte {
	for i := range ds {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, p.of(ds[i].Limit).policy[0]...)
	}
	return text
}

// newPolicy writes a limit's name as a String of RFC 9651. Names hold nothing to escape.
func newPolicy(l headgate.Limit) *policy {
	name := `"` + l.Name() + `"`
	text := appendInteger([]byte(name+";q="), l.Capacity())
	text = appendInteger(append(text, ";w="...), window(l))
	return &policy{
		policy:    []string{string(text)},
		limit:     []string{strconv.FormatInt(l.Capacity(), 10)},
		remaining: name + ";r=",
	}
}

// window returns the time in which an empty bucket fills, or the length of a window, in
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

// ceilDiv returns a/b, rounded up. The products of a valid limit's numbers are below 2^53.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
