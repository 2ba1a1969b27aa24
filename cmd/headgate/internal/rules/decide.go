package rules

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// Verdict is the answer to a request. The zero Verdict denies.
type Verdict struct {
	Allowed bool

	// Decisions are those of the limits of all rules that enforce, in the order of the rules. There
	// is none if a ban or a permit denied, and if no rule applies. If a rule that counts denials
	// denied, they are those of such rules, which are not there otherwise.
	Decisions []headgate.Decision

	// Rule is the name of the rule that denied; of several, the one that denied for the longest.
	Rule   string
	Reason Reason

	// RetryAfter is the wait after which the request may be granted; [headgate.Never] if no wait
	// helps.
	RetryAfter time.Duration
}

// Reason says what denied a request.
type Reason uint8

// The reasons.
const (
	None    Reason = iota // it was allowed
	Limits                // a limit is exceeded
	Permits               // too many requests at once
	Ban                   // an override bans the key
)

// Decide answers q, without permits: see [Question.Begin]. Rules whose cost is in the response
// take their estimate. An error means that the store is unavailable.
func (q *Question) Decide(ctx context.Context) (Verdict, error) {
	defer q.free()
	return q.decide(ctx)
}

// decide asks the rules that enforce, and then those in shadow, whose cost depends on the verdict.
func (q *Question) decide(ctx context.Context) (Verdict, error) {
	failed, err := q.enforce(ctx)
	if err != nil {
		q.fail(failed, err)
		return Verdict{}, err
	}
	v := q.verdict()
	q.observe()
	counts := q.countsDenial(&v)
	if counts {
		q.countDenial(ctx)
	}
	q.decideShadow(ctx, counts)
	return v, nil
}

// enforce asks the rules that can deny, in steps. The first step that denies is the last one. With
// an error, it returns the part that failed.
func (q *Question) enforce(ctx context.Context) (part, error) {
	if q.bans() {
		return enforces, q.inform(ctx, guards, enforces)
	}
	if err := q.take(ctx, guards, true); err != nil {
		return guards, err
	}
	if !q.fit(guards) {
		return enforces, q.inform(ctx, enforces)
	}
	if denied, err := q.acquire(ctx); denied || err != nil {
		return nobody, err
	}
	if err := q.take(ctx, enforces, false); err != nil {
		return enforces, err
	}
	q.granted = headgate.Granted(q.requests, q.decisions)
	if q.granted || !q.order.Hold || len(q.active.waiting) == 0 {
		return enforces, nil
	}
	return enforces, q.hold(ctx)
}

// bans reports whether a ban denies q. It denies no refund.
func (q *Question) bans() (denied bool) {
	for i := range q.asks {
		a := &q.asks[i]
		a.banned = a.banned && a.cost >= 0
		a.asked = a.banned
		denied = denied || a.banned && a.part() != shadows
	}
	return denied
}

// take asks the store for one part of q together, or whether it would grant it.
func (q *Question) take(ctx context.Context, p part, peeks bool) error {
	q.requests = q.requests[:0]
	for a := range q.of(p) {
		cost := a.cost
		if peeks {
			cost = min(cost, 0)
		}
		a.note(q)
		q.requests = a.appendRequests(q.requests, cost, q.order)
	}
	if len(q.requests) == 0 {
		q.decisions = nil
		return nil
	}
	q.decisions = make([]headgate.Decision, len(q.requests))
	if err := take(ctx, q.engine.store, q.requests, q.decisions); err != nil {
		return err
	}
	rest := q.decisions
	for a := range q.of(p) {
		n := len(a.limits)
		a.asked, a.decisions, rest = true, rest[:n:n], rest[n:]
	}
	return nil
}

// note lets the start of a grant be noted, if it may be settled later.
func (a *ask) note(q *Question) {
	if a.start == nil && (q.order.Settle || q.admission != nil && a.rule.settles()) {
		a.start = new(time.Time)
	}
}

// inform tells a program, which names its keys, what other rules would have decided.
func (q *Question) inform(ctx context.Context, others ...part) error {
	if !q.named {
		return nil
	}
	decided := q.decisions
	defer func() { q.decisions = decided }()
	for _, p := range others {
		if err := q.take(ctx, p, true); err != nil {
			return err
		}
		for a := range q.of(p) {
			a.asked = false
		}
	}
	return nil
}

// fit reports whether all asks of a part fit.
func (q *Question) fit(p part) bool {
	for a := range q.of(p) {
		if !a.fits(0) {
			return false
		}
	}
	return true
}

// verdict returns what the rules that enforce have decided together.
func (q *Question) verdict() Verdict {
	v := Verdict{Allowed: q.granted, Decisions: q.decisions}
	for i := range q.asks {
		a := &q.asks[i]
		if a.part() == shadows || a.fits(q.order.MaxWait) || v.Allowed {
			continue
		}
		if wait := a.strictest().RetryAfter; v.Reason == None || wait > v.RetryAfter {
			v.Rule, v.Reason, v.RetryAfter = a.rule.Name, a.reason(), wait
		}
	}
	if v.Reason > Limits {
		v.Decisions = nil
	}
	return v
}

// reason is why a, which does not fit, denies.
func (a *ask) reason() Reason {
	switch {
	case a.banned:
		return Ban
	case a.full:
		return Permits
	}
	return Limits
}

// observe observes what the rules that enforce have decided. If a rule denies, those that would
// have granted are not observed.
func (q *Question) observe() {
	for i := range q.asks {
		a := &q.asks[i]
		switch {
		case a.part() == shadows:
		case a.asked && !a.fits(q.order.MaxWait):
			q.engine.observe(a, Denied, nil)
		case q.granted:
			a.granted = true
			q.engine.observe(a, Allowed, nil)
		}
	}
}

// fail observes that err kept a part of q from deciding. The rules that a program asks fail all.
func (q *Question) fail(p part, err error) {
	for i := range q.asks {
		if a := &q.asks[i]; a.part() == p || q.named {
			q.engine.observe(a, Failed, err)
		}
	}
}

// observe reports an event. A program that peeks or refunds makes none.
func (e *Engine) observe(a *ask, o Outcome, err error) {
	if e.options.Observe == nil || a.rule.Name == "" || a.rule.Mode == Off || a.silent {
		return
	}
	event := Event{
		Rule: &a.rule.Rule, Request: a.request, Key: a.key, Cost: a.cost, Outcome: o, Err: err,
		Banned: a.banned && o == Denied,
	}
	if err == nil {
		event.Decision = a.strictest()
	}
	e.options.Observe(event)
}

// take decides any number of requests together, in one trip.
func take(
	ctx context.Context, s headgate.Store, rs []headgate.Request, ds []headgate.Decision,
) (err error) {
	switch len(rs) {
	case 0:
		return nil
	case 1:
		ds[0], err = s.Take(ctx, rs[0])
		return err
	}
	return s.TakeAll(ctx, rs, ds)
}

// together calls f for asks at the same time, so that what they ask the store shares a trip.
func (q *Question) together(
	ctx context.Context, asks []*ask, f func(*Question, context.Context, *ask),
) {
	switch len(asks) {
	case 0:
	case 1:
		f(q, ctx, asks[0])
	default:
		var all sync.WaitGroup
		for _, a := range asks {
			all.Go(func() { f(q, ctx, a) })
		}
		all.Wait()
	}
}
