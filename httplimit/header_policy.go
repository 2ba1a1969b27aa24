package httplimit

import (
	"strconv"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/limitmap"
)

// policy is the text of the fields that is the same for every response under a limit.
// All responses share the slices, whose capacity is their length, so that a handler that
// adds a value copies them.
type policy struct {
	policy    []string // of RateLimit-Policy
	limit     []string // of X-RateLimit-Limit
	remaining string   // of RateLimit, up to the number
}

// policies keeps the policy of each limit. A nil *policies keeps none.
type policies struct {
	*limitmap.Map[headgate.Limit, *policy]
}

// maxPolicies bounds what is kept, in case a program makes limits for each request.
const maxPolicies = 1000

func newPolicies() *policies { return &policies{limitmap.New(maxPolicies, newPolicy)} }

// of returns the policy of l.
func (p *policies) of(l headgate.Limit) *policy {
	if p != nil {
		if known, ok := p.Get(l); ok {
			return known
		}
	}
	return newPolicy(l)
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
		rate, unit := fraction(l)
		micros = ceilDiv(l.Capacity()*unit, rate)
	case headgate.AlgorithmStepped:
		micros *= ceilDiv(l.Capacity(), l.Refill())
	}
	return ceilDiv(micros, 1_000_000)
}

// fraction returns the tokens of a microsecond in lowest terms, as rate/unit.
func fraction(l headgate.Limit) (rate, unit int64) {
	return algorithm.Fraction(l.Refill(), l.Period().Microseconds())
}

// ceilDiv returns a/b, rounded up. The products of a valid limit's numbers are below 2^53.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
