package httplimit

import (
	"math/bits"
	"strconv"

	"github.com/headgate/headgate"
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

func (p *policies) of(l headgate.Limit) *policy {
	if p == nil {
		return newPolicy(l)
	}
	return p.Of(l)
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
	if l.Algorithm() != headgate.AlgorithmCalendarWindow { // its windows differ in length
		text = appendInteger(append(text, ";w="...), window(l))
	}
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
		var rest int64
		if micros, rest = refillTime(l, l.Capacity()); rest > 0 {
			micros++
		}
	case headgate.AlgorithmSteppedTokenBucket:
		micros *= ceilDiv(l.Capacity(), l.Refill())
	}
	return ceilDiv(micros, 1_000_000)
}

// refillTime returns the microseconds in which n tokens arrive, rounded down, and the remainder of
// the division. For the capacity of a limit they are below 2^53; more is cut off there, because
// another implementation of Store may return any number.
func refillTime(l headgate.Limit, n int64) (micros, rest int64) {
	high, low := bits.Mul64(uint64(n), uint64(l.Period().Microseconds()))
	refill := uint64(l.Refill())
	if high >= refill {
		return 1 << 53, 0
	}
	quotient, remainder := bits.Div64(high, low, refill)
	return int64(min(quotient, 1<<53)), int64(remainder)
}

// ceilDiv returns a/b, rounded up. The products of a valid limit's numbers are below 2^53.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
