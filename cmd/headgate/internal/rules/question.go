package rules

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/usage"
)

// Question is what is asked for one request: an ask of each rule that matches it, or of each that a
// program names. [Question.Decide] or [Question.Begin] answers it; it cannot be used after that.
type Question struct {
	engine    *Engine
	active    *active
	order     Order
	named     bool // by a program, which may name wrong keys, and wants each decision
	found     []*rule
	asks      []ask
	requests  []headgate.Request
	admission *Admission // nil for callers that do not see the end of the request

	granted   bool                // all rules that enforce granted
	decisions []headgate.Decision // of the rules that enforce, and were asked last
	asked     part                // those rules
	exhausted []headgate.Decision // of the rules that enforce, before the body was read
	waited    time.Duration       // for permits

	arrival Arrival // see BeforeWait

	shadowDecisions []headgate.Decision
}

// Order says how a [Question] is asked. The zero Order charges what fits now.
type Order struct {
	MaxWait time.Duration // grants may be booked this far ahead
	Force   bool          // charge what does not fit, too
	Hold    bool          // wait for the turn of a rule that holds requests
	Settle  bool          // the grant may be settled later: note its start
	Refund  bool          // return the cost
}

func (e *Engine) question(o Order) *Question {
	q := e.questions.Get().(*Question) //nolint:forcetypeassert // the pool holds nothing else
	q.engine, q.active, q.order = e, e.active.Load(), o
	return q
}

// free keeps the memory of q, and none of what it points to.
func (q *Question) free() {
	clear(q.found)
	clear(q.asks)
	clear(q.requests[:cap(q.requests)])
	clear(q.shadowDecisions[:cap(q.shadowDecisions)])
	e := q.engine
	*q = Question{
		found: q.found[:0], asks: q.asks[:0], requests: q.requests[:0],
		shadowDecisions: q.shadowDecisions[:0],
	}
	e.questions.Put(q)
}

// Match makes the Question to all rules that match r.
func (e *Engine) Match(r *Request) *Question {
	q := e.question(Order{Hold: true})
	t := newTarget(r)
	q.found = q.active.index.match(&t, q.found)
	if len(q.found) == 0 && e.options.Unmatched != nil {
		e.options.Unmatched()
	}
	for _, rule := range q.found {
		q.add(rule, &t)
	}
	return q
}

// MatchRule makes the Question to one rule, whether or not it matches r. It returns a [NoRuleError]
// if there is no such rule.
func (e *Engine) MatchRule(name string, r *Request) (*Question, error) {
	q := e.question(Order{Hold: true})
	rule := q.active.byName[name]
	if rule == nil {
		q.free()
		return nil, &NoRuleError{Name: name}
	}
	if t := newTarget(r); !t.preflight || rule.names(http.MethodOptions) {
		q.add(rule, &t)
	}
	return q, nil
}

// Arrival is a request of which a part is still to come.
type Arrival interface {
	// Arrive reads the rest. It reports false if that is too much, or does not come.
	Arrive() bool
}

// BeforeWait lets a arrive before it waits for its turn or for a permit; else it is denied. So a
// client takes a place only with a request that is there, and the server sees if the client leaves.
func (q *Question) BeforeWait(a Arrival) { q.arrival = a }

// DoNotHold lets q be denied at once, also by rules that hold requests.
func (q *Question) DoNotHold() { q.order.Hold = false }

// add asks r what t would be charged. A rule that is off, or exempts the client, is not asked.
func (q *Question) add(r *rule, t *target) {
	if r.Mode != Off && !contains(r.Exempt, t.Client) {
		q.asks = append(q.asks, q.engine.askTarget(r, t))
	}
}

func (e *Engine) askTarget(r *rule, t *target) ask {
	a := e.ask(r, r.key(t))
	a.cost, a.request, a.percent = r.cost(t.Request), t.Request, r.Headroom.percent(t.Header)
	if r.late {
		a.cost = a.fitting(a.cost)
	}
	return a
}

// Reads reports whether a rule reads this field of the header, by its canonical name.
func (q *Question) Reads(field string) bool {
	return slices.ContainsFunc(q.found, func(r *rule) bool {
		return r.Cost.RequestHeader == field || r.Headroom.Header == field ||
			slices.ContainsFunc(r.Key, func(p KeyPart) bool {
				return p.Source == "header" && slices.Contains(strings.Split(p.Name, "|"), field)
			})
	})
}

// NeedsBody reports whether a rule charges or counts by what the body of the request says. The body
// of a request that a ban denies is not needed.
func (q *Question) NeedsBody() bool {
	needs := false
	for i := range q.asks {
		a := &q.asks[i]
		if a.banned && a.part() != shadows {
			return false
		}
		needs = needs || (a.rule.Cost.Tokens != nil || a.rule.byModel()) && !a.banned
	}
	return needs
}

// Exhausted reports whether nothing is left for a rule that charges by the body, and denies at once
// what does not fit. Then this denies q, and what is refunded meanwhile does not grant it. It does
// not look at keys that are in the body.
func (q *Question) Exhausted(ctx context.Context) bool {
	if !slices.ContainsFunc(q.asks, func(a ask) bool { return a.runsOut() }) {
		return false
	}
	var rs []headgate.Request
	for a := range q.of(enforces) {
		n := len(rs)
		rs = a.appendRequests(rs, 0, q.order)
		for i := range rs[n:] {
			rs[n+i].Headroom += max(a.cost, 1) - 1 // a peek asks for a cost of 1
		}
	}
	ds := make([]headgate.Decision, len(rs))
	if take(ctx, q.engine.store, rs, ds) != nil { // which the decision reports
		return false
	}
	rest := ds
	for a := range q.of(enforces) {
		for _, l := range a.limits {
			others := a.headroom + partOf(a.percent, l.Capacity())
			if d := rest[0]; a.runsOut() && !d.Allowed() && d.Remaining <= others {
				q.exhausted = ds
				return true
			}
			rest = rest[1:]
		}
	}
	return false
}

// runsOut reports whether a denies at once, by what is left, a body that is not read.
func (a *ask) runsOut() bool {
	return a.part() == enforces && !a.banned && a.rule.Cost.Tokens != nil && !a.rule.holds() &&
		!a.rule.byModel()
}

// Expect charges and counts by what the body of the request says.
func (q *Question) Expect(body usage.Request) {
	details := sync.OnceValue(body.Details)
	for i := range q.asks {
		a := &q.asks[i]
		if a.rule.byModel() {
			a.request.Model = details().Model
			t := newTarget(a.request)
			*a = q.engine.askTarget(a.rule, &t)
		}
		if a.rule.Cost.Tokens != nil {
			a.cost = a.fitting(a.rule.Cost.Tokens.Before(body))
		}
	}
}

// CountsTokens reports whether a rule that can deny the request charges tokens. Then a request must
// have an answer that reports them.
func (q *Question) CountsTokens() bool {
	return slices.ContainsFunc(q.asks, func(a ask) bool {
		return a.rule.Cost.Tokens != nil && a.part() != shadows
	})
}

// IncludesUsage reports whether a rule asks streams for their usage.
func (q *Question) IncludesUsage() bool {
	return slices.ContainsFunc(q.asks, func(a ask) bool {
		return a.rule.Cost.Tokens != nil && a.rule.Cost.Tokens.IncludeUsage
	})
}
