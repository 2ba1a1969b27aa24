package rules

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// charge is what one rule asks for a request.
type charge struct {
	rule   *rule
	key    string
	cost   int64
	limits []headgate.Limit // after overrides
	banned bool
	until  time.Time // of the ban
	first  int       // the first of its requests in a group

	start   *time.Time // of the grant, if it may be refunded
	granted bool
	request *Request
	percent int64 // of each limit that the request leaves to others
}

// charge looks up what applies to a key.
func (e *Engine) charge(r *rule, key string, cost int64) charge {
	c := charge{rule: r, key: key, cost: cost, limits: r.limits}
	if e.options.Overrides == nil {
		return c
	}
	o, found := e.options.Overrides.Find(r.Name, key)
	if !found {
		return c
	}
	c.banned, c.until = o.Ban, o.Until
	if len(o.Limits) > 0 {
		c.limits = o.Limits
	}
	return c
}

// requests appends the requests of c to rs, one for each limit.
func (c *charge) requests(rs []headgate.Request) []headgate.Request {
	for _, l := range c.limits {
		rs = append(rs, headgate.Request{Key: c.key, Limit: l, Cost: c.cost,
			Headroom: partOf(c.percent, l.Capacity())})
	}
	return rs
}

// settles reports whether what r charges may be refunded: after the response, or if another rule
// denies a request that r has held.
func (r *rule) settles() bool { return r.late || len(r.Count.Statuses) > 0 || r.holds() }

// cost returns the cost of q that is known before the response.
func (r *rule) cost(q *target) int64 {
	if name := r.Cost.RequestHeader; name != "" {
		n, _ := number(q.Header.Get(name))
		return max(n, 1)
	}
	if r.late {
		return r.estimate(q)
	}
	return max(r.Cost.Fixed, 1)
}

// maxCost is the largest cost in a header field. All languages count it exactly.
const maxCost = 1<<53 - 1

// number returns the cost in a header field, and whether it is one.
func number(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil || n < 0 || n > maxCost {
		return 0, false
	}
	return n, true
}
