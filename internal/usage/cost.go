package usage

import (
	"errors"
	"fmt"
	"net"
)

// Cost says what a request to a model costs: a weighted sum of its tokens.
type Cost struct {
	Estimate              int64 // of a request that does not bound its answer; at least 1
	Input, Output, Cached int64 // weights of tokens, from 0 to MaxWeight; one is above 0
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
	return nil
}

// Before returns what to reserve for a request.
func (c Cost) Before(r Request) int64 {
	if !r.Bounded {
		return c.Estimate
	}
	return max(c.of(Counts{Input: (r.Bytes + 3) / 4, Output: r.MaxOutput}), 1)
}

// After returns what an answer costs for which reserved was taken, and whether its usage is known.
// Without it, the answer costs what was reserved, or more if more was seen; a failure costs
// nothing.
func (c Cost) After(reserved int64, a Answer) (cost int64, known bool) {
	seen := c.of(a.Counts)
	switch {
	case a.Complete:
		return seen, true
	case a.Failed && a.Counts == Counts{}:
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
