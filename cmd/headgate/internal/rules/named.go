package rules

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/redisstore"
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

// RuleCost is the Cost of a program that does not say one. No other Cost is as low.
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

// AskError is what is wrong with one of several asks: a [NoRuleError], a [KeyError], or a
// [headgate.InvalidError] whose Field is rule or key.
type AskError struct {
	Index int // from 0
	Err   error
}

// Error is that of the ask.
func (e *AskError) Error() string { return e.Err.Error() }

// Unwrap returns the error of the ask.
func (e *AskError) Unwrap() error { return e.Err }

// Answer answers each ask, and reports whether all were granted: else none of those that enforce is
// charged. It returns an [AskError] for what is wrong with asks. Any other error means that the
// store is unavailable.
func (e *Engine) Answer(
	ctx context.Context, o Order, asks ...Ask,
) (answers []Answer, granted bool, err error) {
	q := e.question(o)
	defer q.free()
	q.named = true
	for i, a := range asks {
		err := q.resolve(a)
		if err == nil {
			err = q.check()
		}
		if err != nil {
			return nil, false, &AskError{Index: i, Err: err}
		}
	}
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

// check checks the last ask, and takes what does not apply from a rule that is off.
func (q *Question) check() error {
	last := len(q.asks) - 1
	a := &q.asks[last]
	switch {
	case len(a.limits) == 0:
		return invalid("rule", strconv.Quote(a.rule.Name)+", which has permits and no limits",
			"a rule with limits, or /v1/acquire")
	case q.order.Settle && a.rule.Count.Denied:
		return invalid("rule", strconv.Quote(a.rule.Name)+", which counts denials", "another rule")
	}
	for i := range q.asks[:last] {
		b := &q.asks[i]
		if b.key == a.key && b.rule.Name == a.rule.Name &&
			(b.rule == a.rule || b.limits[0].ID() == a.limits[0].ID()) {
			return invalid("key", fmt.Sprintf("%.500q, with the same limit as in requests[%d]",
				a.key, i), "one request for each key and limit, with the costs added up")
		}
	}
	if a.rule.Mode == Off {
		a.banned, a.limits = false, nil
	}
	return nil
}

// resolve adds an ask, after it has found what applies to it.
func (q *Question) resolve(of Ask) error {
	r := q.active.byName[of.Rule]
	switch {
	case of.Rule == "":
		r = &rule{limits: []headgate.Limit{of.Limit}}
	case r == nil:
		return &NoRuleError{Name: of.Rule}
	case of.Key == "" && len(r.Key) == 0: // as gateways and the proxy count it
		of.Key = KeyOfAll
	}
	if of.Key == "" {
		return invalid("key", "missing", "a key such as ip:192.0.2.1")
	}
	if q.named && len(r.Key) > 0 && !r.AnyKey && !redisstore.IsHash(of.Key) {
		if err := r.checkExactKey(of.Key); err != nil {
			return &KeyError{err.Error() + ", or any_key: true in the rule"}
		}
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
	q.asks = append(q.asks, a)
	return nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

func (q *Question) answer(a *ask) Answer {
	enforce := a.rule.Mode == Enforce
	v := Answer{
		Mode: a.rule.Mode, Key: a.key, Strictest: a.strictest(), Banned: a.banned,
		Allowed: !enforce || a.fits(q.order.MaxWait), Fits: a.fits(0),
		Decisions: a.decisions,
	}
	if a.rule.Name != "" {
		v.Rule = &a.rule.Rule
	}
	if len(a.decisions) == 0 && !a.banned {
		v.Strictest = headgate.Strictest(nil)
	}
	if !v.Allowed && !v.Banned && !a.silent {
		v.Strictest.RetryAfter = a.rule.Reply.later(v.Strictest.RetryAfter, time.Millisecond)
	}
	if a.granted && a.rule.Mode != Off {
		v.Charged = a.cost
	}
	if !enforce { // what shadow decides is kept for the next Question
		v.Decisions = slices.Clone(a.decisions)
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
	q := e.question(Order{})
	defer q.free()
	if err := q.resolve(of); err != nil {
		return v, 0, err
	}
	a := &q.asks[0]
	a.banned = false
	if a.rule.Mode == Off {
		a.limits = nil
	}
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
	dropped := a.strictest().Unchecked() // by a fallback
	if a.cost < 0 && headgate.Granted(requests, a.decisions) && !dropped {
		refunded = -a.cost
	}
	return q.answer(a), refunded, nil
}
