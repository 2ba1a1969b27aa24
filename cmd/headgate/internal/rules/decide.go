package rules

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
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

	// GiveUp tells clients that retry by themselves not to: the wait is too long for that.
	GiveUp bool

	Reply Reply              // of the rule that denied
	Hides []httplimit.Fields // of each of Decisions; nil: nothing is hidden
}

// Shown returns the decisions that fields report.
func (v *Verdict) Shown(fields httplimit.Fields) []headgate.Decision {
	if v.Hides == nil {
		return v.Decisions
	}
	var shown []headgate.Decision
	for i, d := range v.Decisions {
		if v.Hides[i]&fields == 0 {
			shown = append(shown, d)
		}
	}
	return shown
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
	if err := q.enforce(ctx); err != nil {
		if !errors.Is(err, context.Canceled) { // else the client left
			q.answered(Failed)
		}
		return Verdict{}, err
	}
	v := q.verdict()
	q.observe()
	answer := Denied
	if v.Allowed {
		answer = Allowed
	}
	q.answered(answer)
	counts := q.countsDenial(&v)
	if counts {
		q.countDenial(ctx)
	}
	q.decideShadow(ctx, counts)
	return v, nil
}

// enforce asks the rules that can deny, in steps. The first step that denies is the last one.
func (q *Question) enforce(ctx context.Context) error {
	if q.bans() {
		return q.inform(ctx, guards, enforces)
	}
	if err := q.take(ctx, guards, true); err != nil {
		return err
	}
	if !q.fit(guards) {
		return q.inform(ctx, enforces)
	}
	if free, err := q.acquire(ctx); !free || err != nil {
		return err
	}
	if err := q.grant(ctx); q.granted || err != nil || !q.order.Hold || len(q.active.waiting) == 0 {
		return err
	}
	return q.hold(ctx)
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

// grant asks the store for all that can deny: all are granted, or none is charged.
func (q *Question) grant(ctx context.Context) error {
	err := q.take(ctx, enforces, false)
	q.granted = err == nil && headgate.Granted(q.requests, q.decisions)
	return err
}

// take asks the store for one part of q together, or only peeks.
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
	q.decisions, q.asked = make([]headgate.Decision, len(q.requests)), p
	if q.exhausted != nil && p == enforces {
		copy(q.decisions, q.exhausted)
	} else if err := take(ctx, q.engine.store, q.requests, q.decisions); err != nil {
		q.fail(p, err)
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

// inform tells a program, which names its keys, what other rules would decide. They deny nothing.
func (q *Question) inform(ctx context.Context, others ...part) error {
	decided := q.decisions
	for _, p := range others {
		if !q.named {
			break
		}
		if err := q.take(ctx, p, true); err != nil {
			return err
		}
		for a := range q.of(p) {
			a.asked = false
		}
	}
	q.decisions = decided
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
		if a.part() == shadows || !a.asked || a.fits(q.order.MaxWait) || v.Allowed {
			continue
		}
		if wait := a.strictest().RetryAfter; v.Reason == None || wait > v.RetryAfter {
			v.Rule, v.Reason, v.RetryAfter = a.rule.Name, a.reason(), wait
			v.Reply = a.rule.Reply
			v.GiveUp = a.banned || wait > cmp.Or(a.rule.RetryWithin, time.Minute)
		}
	}
	switch {
	case v.Reason > Limits:
		v.Decisions = nil
	case q.active.hides:
		for a := range q.of(q.asked) {
			v.Hides = append(v.Hides,
				slices.Repeat([]httplimit.Fields{a.rule.Reply.Hides}, len(a.limits))...)
		}
	}
	if v.Reason == Limits {
		v.RetryAfter = v.Reply.later(v.RetryAfter, time.Second)
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

// answered reports the answer to a request, unless a program peeks or refunds.
func (q *Question) answered(o Outcome) {
	if q.engine.options.Answered != nil && len(q.asks) > 0 && !q.asks[0].silent {
		q.engine.options.Answered(o)
	}
}

// fail observes that err kept a part of q from deciding.
func (q *Question) fail(p part, err error) {
	for a := range q.of(p) {
		q.engine.observe(a, Failed, err)
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
