package usage

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
)

// Cost says what a request to a model costs: a weighted sum of its tokens.
type Cost struct {
	Estimate              int64  // of an answer that the request does not bound; at least 1
	Input, Output, Cached int64  // weights of tokens, from 0 to MaxWeight; one is above 0
	Bound                 string // the field of Bounds that the server reads; "": all of them
	RefundUnknown         bool   // a document of JSON without usage costs nothing
	IncludeUsage          bool   // streams are asked for their usage; see package proxy
}

// MaxWeight is the largest weight.
const MaxWeight = 1_000_000

// Validate reports what is wrong with c.
func (c Cost) Validate() error {
	for _, f := range []struct {
		name               string
		value, least, most int64
	}{
		{"estimate", c.Estimate, 1, MaxCount}, {"input", c.Input, 0, MaxWeight},
		{"output", c.Output, 0, MaxWeight}, {"cached", c.Cached, 0, MaxWeight},
	} {
		if f.value < f.least || f.value > f.most {
			return fmt.Errorf("%s is %d; want %d to %d", f.name, f.value, f.least, f.most)
		}
	}
	if c.Input+c.Output+c.Cached == 0 {
		return errors.New("input, output and cached are 0; want a weight above 0")
	}
	if c.Bound != "" && !slices.Contains(Bounds(), c.Bound) {
		return fmt.Errorf("bound is %q; want one of %s", c.Bound, strings.Join(Bounds(), ", "))
	}
	return nil
}

// Before returns what to reserve for a request: the tokens of its body, at 4 bytes each, and of its
// answer.
func (c Cost) Before(r Request) int64 {
	answer := c.Estimate
	if most, bounded := r.bound(c.Bound); bounded {
		answer = c.of(Counts{Output: most})
	}
	return min(max(c.of(Counts{Input: (r.Bytes + 3) / 4})+answer, 1), MaxCount)
}

// After returns what an answer costs for which reserved was taken, and whether its usage is known.
// Without it, the answer costs what was reserved, or more if more was seen; a failure costs
// nothing, and neither does a document without usage if c says so.
func (c Cost) After(reserved int64, a Answer) (cost int64, known bool) {
	seen := c.of(a.Counts)
	switch {
	case a.Complete:
		return seen, true
	case a.Failed && a.Counts == Counts{}, a.Silent && c.RefundUnknown:
		return 0, false
	}
	return max(reserved, seen), false
}

// of returns the weighted sum, at most MaxCount.
func (c Cost) of(n Counts) int64 {
	return min(times(n.Input, c.Input)+times(n.Output, c.Output)+times(n.Cached, c.Cached),
		MaxCount)
}

// times returns a product, at most MaxCount.
func times(n, weight int64) int64 {
	if weight > 0 && n > MaxCount/weight {
		return MaxCount
	}
	return n * weight
}

// Unsent reports whether err of a RoundTripper shows that the request was not sent.
func Unsent(err error) bool {
	op, is := errors.AsType[*net.OpError](err)
	return is && op.Op == "dial"
}
