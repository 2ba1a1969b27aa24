package rules

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
)

// This file asks about keys that a program names.

// Ask is what a program asks about one key: of a rule or, without one, of a limit.
type Ask struct {
	Rule  string
	Limit headgate.Limit // if there is no rule
	Key   string

	// Cost is charged; 0 peeks. [RuleCost] is what the rule says; 1 for a limit.
	Cost     int64
	Headroom int64 // tokens, or permits, that are left to others
}

// RuleCost is the Cost of a program that does not say one.
const RuleCost = -1 << 63

// Answer is what was decided about an [Ask].
type Answer struct {
	Rule *Rule // nil: of a limit; the caller must not change it
	Mode Mode
	Key  string

	Decisions []headgate.Decision // one for each limit; none if the key is banned, or the rule off
	Strictest headgate.Decision   // of those; the end of a ban; [headgate.Unlimited] without any
	Allowed   bool                // by this rule; of a [Question], the others may deny
	Fits      bool                // a rule in shadow would have allowed it, too
	Banned    bool
	Wait      time.Duration // until a grant that was booked ahead
	Charged   int64
	Starts    []time.Time // of the grant, one for each limit, if they are known
}

// Question makes one of keys that a program names; see [Question.Ask].
func (e *Engine) Question(o Order) *Question {
	q := e.question(o)
	q.named = true
	return q
}

// RepeatedError is returned for an [Ask] that has the key and the limits of an earlier one.
type RepeatedError struct {
	Key   string
	First int // the earlier one, from 0
}

// Error names the earlier one.
func (e *RepeatedError) Error() string {
	return fmt.Sprintf("rules: key %q is asked for with the limit of ask %d", e.Key, e.First)
}

// Ask adds a to q. It returns a [NoRuleError], a [RepeatedError], or a [headgate.InvalidError]
// whose Field is rule or key.
func (q *Question) Ask(a Ask) error {
	if err := q.resolve(a); err != nil {
		return err
	}
	last := len(q.asks) - 1
	added := &q.asks[last]
	switch {
	case len(added.rule.limits) == 0:
		return invalid("rule", strconv.Quote(a.Rule)+", which has permits and no limits",
			"a rule with limits, or /v1/acquire")
	case q.order.Settle && added.part() == guards:
		return invalid("rule", strconv.Quote(a.Rule)+", which counts denials", "another rule")
	}
	first := slices.IndexFunc(q.asks, func(other ask) bool {
		return other.key == added.key && other.rule.Name == a.Rule &&
			(a.Rule != "" || other.limits[0].ID() == a.Limit.ID())
	})
	if first < last {
		return &RepeatedError{Key: added.key, First: first}
	}
	return nil
}

// resolve adds a, after it has found what applies to it.
func (q *Question) resolve(of Ask) error {
	r := &rule{limits: []headgate.Limit{of.Limit}}
	if of.Rule != "" {
		if r = q.active.byName[of.Rule]; r == nil {
			return &NoRuleError{Name: of.Rule}
		}
		if of.Key == "" && len(r.Key) == 0 { // as gateways and the proxy count it
			of.Key = KeyOfAll
		}
	}
	if of.Key == "" {
		return invalid("key", "missing", "a key such as ip:192.0.2.1")
	}
	a := q.engine.ask(r, of.Key)
	a.cost, a.headroom = of.Cost, of.Headroom
	if of.Cost == RuleCost {
		a.cost = r.Cost.Known()
		if r.late {
			a.cost = a.fitting(a.cost)
		}
	}
	if q.order.Refund {
		a.cost = -a.cost
	}
	a.silent = a.cost <= 0
	if r.Mode == Off {
		a.banned, a.limits = false, nil
	}
	q.asks = append(q.asks, a)
	return nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

// Answer answers each ask of q, and reports whether all were granted: else none of those that
// enforce is charged. An error means that the store is unavailable.
func (q *Question) Answer(ctx context.Context) (answers []Answer, granted bool, err error) {
	defer q.free()
	v, err := q.decide(ctx)
	if err != nil {
		return nil, false, err
	}
	answers = make([]Answer, len(q.asks))
	for i := range q.asks {
		answers[i] = q.answer(&q.asks[i])
	}
	return answers, v.Allowed, nil
}

func (q *Question) answer(a *ask) Answer {
	enforce := a.rule.Mode == Enforce
	v := Answer{
		Mode: a.rule.Mode, Key: a.key, Strictest: a.strictest(), Banned: a.banned,
		Allowed: !enforce || a.fits(q.order.MaxWait), Fits: a.fits(0),
		Decisions: slices.Clone(a.decisions),
	}
	if a.rule.Name != "" {
		v.Rule = &a.rule.Rule
	}
	if len(a.decisions) == 0 && !a.banned {
		v.Strictest = headgate.Strictest(nil)
	}
	if a.granted {
		v.Charged = a.cost
	}
	if !enforce || !a.granted {
		return v
	}
	if q.order.MaxWait > 0 && a.cost > 0 {
		for _, d := range q.decisions { // all grants have one start
			v.Wait = max(v.Wait, d.RetryAfter)
		}
	}
	if a.start != nil && !a.start.IsZero() { // else a fallback has granted it
		v.Starts = slices.Repeat([]time.Time{*a.start}, len(a.limits))
	}
	return v
}

// Settle charges the cost of what was used, whether or not it fits, for a banned key, too. A cost
// below 0 is refunded. It may name the starts of its grant, one for each limit. Settle goes on if
// ctx ends.
func (e *Engine) Settle(
	ctx context.Context, of Ask, starts []time.Time,
) (v Answer, refunded int64, err error) {
	q := e.Question(Order{})
	defer q.free()
	if err := q.resolve(of); err != nil {
		return v, 0, err
	}
	a := &q.asks[0]
	a.banned = false
	if len(starts) > 0 && len(starts) == len(a.limits) {
		a.start = &starts[0]
	}
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	requests := a.appendSettling(nil)
	a.decisions = make([]headgate.Decision, len(requests))
	if err := take(ctx, e.store, requests, a.decisions); err != nil {
		e.observe(a, Failed, err)
		return v, 0, err
	}
	if a.cost < 0 && headgate.Granted(requests, a.decisions) {
		refunded = -a.cost
	}
	return q.answer(a), refunded, nil
}
