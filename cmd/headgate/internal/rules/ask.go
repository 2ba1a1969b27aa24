package rules

import (
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// ask is what is asked of one rule about one key, and what the rule answers.
type ask struct {
	rule     *rule // of a limit without a rule: one without a name
	key      string
	cost     int64
	limits   []headgate.Limit // after overrides
	percent  int64            // of each limit that is left to others
	headroom int64            // tokens of each limit, or permits, that are left to others
	request  *Request         // nil if a program names the key
	banned   bool
	until    time.Time  // of the ban
	start    *time.Time // of the grant, if it may be settled later

	silent    bool                // a program peeks or refunds
	asked     bool                // the store was asked, or the key is banned
	decisions []headgate.Decision // one for each limit
	full      bool                // no permit is free
	granted   bool                // it is charged
	err       error
}

// part is when an ask is answered.
type part uint8

const (
	enforces part = iota // together with the others that can deny
	guards               // before those, because its rule counts what they deny
	shadows              // after those
)

func (a *ask) part() part {
	switch {
	case a.rule.Mode != Enforce:
		return shadows
	case a.rule.Count.Denied:
		return guards
	}
	return enforces
}

// of returns the asks of a part whose key is not banned.
func (q *Question) of(p part) iter.Seq[*ask] {
	return func(yield func(*ask) bool) {
		for i := range q.asks {
			if a := &q.asks[i]; a.part() == p && !a.banned && !yield(a) {
				return
			}
		}
	}
}

// ask looks up what applies to a key.
func (e *Engine) ask(r *rule, key string) ask {
	a := ask{rule: r, key: key, limits: r.limits}
	if e.options.Overrides == nil || r.Name == "" {
		return a
	}
	o, found := e.options.Overrides.Find(r.Name, key)
	if !found {
		return a
	}
	a.banned, a.until = o.Ban, o.Until
	if len(o.Limits) > 0 {
		a.limits = o.Limits
	}
	return a
}

// appendRequests appends the requests of a to rs, one for each limit.
func (a *ask) appendRequests(rs []headgate.Request, cost int64, o Order) []headgate.Request {
	for _, l := range a.limits {
		r := headgate.Request{Key: a.key, Limit: l, Cost: cost,
			Headroom: a.headroom + partOf(a.percent, l.Capacity())}
		if cost > 0 {
			r.MaxWait, r.Force = o.MaxWait, o.Force
			if o.MaxWait > 0 || l.Refill() == 0 { // the refund of a bucket names no start
				r.Start = a.start
			}
		}
		rs = append(rs, r)
	}
	return rs
}

// settles reports whether what r charges may be refunded: after the response, or if another rule
// denies a request that r has held.
func (r *rule) settles() bool { return r.late || len(r.Count.Statuses) > 0 || r.holds() }

// fits reports whether the rule of a grants within wait.
func (a *ask) fits(wait time.Duration) bool {
	if a.banned || a.full {
		return false
	}
	for _, d := range a.decisions {
		if !d.Within(wait) {
			return false
		}
	}
	return true
}

// strictest returns the decision that speaks for a.
func (a *ask) strictest() headgate.Decision {
	switch {
	case a.banned:
		return headgate.Decision{RetryAfter: a.banEnds(), ResetAfter: a.banEnds()}
	case a.full:
		return headgate.Decision{RetryAfter: permitPause}
	case len(a.decisions) == 0:
		return headgate.Decision{}
	}
	return headgate.Strictest(a.decisions)
}

// banEnds returns the time until the ban of a ends.
func (a *ask) banEnds() time.Duration {
	if a.until.IsZero() {
		return headgate.Never
	}
	return max(time.Until(a.until), time.Microsecond)
}

// cost returns the cost of q that is known before the response, without its body.
func (r *rule) cost(q *Request) int64 {
	if name := r.Cost.RequestHeader; name != "" {
		n, _ := number(q.Header.Get(name))
		return max(n, 1)
	}
	return r.Cost.Known()
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
