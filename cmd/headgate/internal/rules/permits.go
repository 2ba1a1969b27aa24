package rules

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// permitPause is the Retry-After of a request that found no permit: one is free when another
// request ends, which no store can foresee.
const permitPause = time.Second

// PermitKey is the key under which permits of a rule are kept for a key of the rule.
func PermitKey(rule, key string) string { return rule + " " + key }

// acquire acquires the permits of all rules that enforce, all at the same time. A rule that holds
// requests then waits for a permit, if those of the others are there.
func (q *Question) acquire(ctx context.Context) (denied bool, err error) {
	q.some = q.some[:0]
	for a := range q.of(enforces) {
		if a.rule.Permits > 0 {
			q.some = append(q.some, a)
		}
	}
	q.together(ctx, q.some, (*Question).tryPermit)
	for _, a := range q.some {
		q.keep(ctx, a)
		denied = denied || a.full && !(a.percent == 0 && a.rule.holds())
	}
	for _, a := range q.some {
		if a.full && !denied && a.err == nil {
			a.err = q.waitForPermit(ctx, a)
			q.keep(ctx, a)
			denied = a.full
		}
		if a.err != nil {
			q.engine.observe(a, Failed, a.err)
			err = a.err
		}
	}
	return denied, err
}

// tryPermit acquires a permit for a, if its rule has permits, and the caller sees the end of the
// request.
func (q *Question) tryPermit(ctx context.Context, a *ask) {
	l := q.active.permits[a.rule]
	if l == nil || q.admission == nil {
		return
	}
	a.permit, _, a.err = l.AcquireWithHeadroom(ctx, PermitKey(a.rule.Name, a.key),
		partOf(a.percent, a.rule.Permits))
	a.asked, a.full = true, a.permit == nil && a.err == nil
}

// keep renews the permit of a, until the end of the request. If the store fails for longer than the
// permit lasts, another request may have the place. The request goes on: to cut it off would help
// nobody.
func (q *Question) keep(ctx context.Context, a *ask) {
	if a.permit == nil {
		return
	}
	_, stop := a.permit.Keep(context.WithoutCancel(ctx))
	q.admission.held = append(q.admission.held, held{a.permit, stop})
	a.permit = nil
}

// PermitAnswer is the answer to a program that asks for a permit.
type PermitAnswer struct {
	concurrency.Decision

	Key          string
	Permits      int64 // of the rule
	ShadowDenied bool  // the rule is in shadow, and would have denied
	Shadow       bool
	Banned       bool
	ID           concurrency.PermitID
}

// AcquirePermit acquires a permit, which expires after ttl unless it is renewed. A rule that does
// not enforce denies none. An error that is no [headgate.InvalidError] and no [NoRuleError] is one
// of the store.
func (e *Engine) AcquirePermit(
	ctx context.Context, of Ask, ttl time.Duration,
) (v PermitAnswer, err error) {
	of.Cost = 1
	q := e.Question(Order{})
	defer q.free()
	if err := q.resolve(of); err != nil {
		return v, err
	}
	a := &q.asks[0]
	if a.rule.Permits == 0 {
		return v, invalid("rule", strconv.Quote(of.Rule)+", which has no permits",
			"a rule with permits")
	}
	v = PermitAnswer{Key: a.key, Permits: a.rule.Permits, Shadow: a.rule.Mode == Shadow}
	if a.banned && a.rule.Mode == Enforce {
		v.Banned, v.RetryAfter = true, a.banEnds()
		e.observe(a, Denied, nil)
		return v, nil
	}
	r := concurrency.Request{Key: PermitKey(of.Rule, a.key), TTL: ttl, Limit: MaxPermits}
	if a.rule.Mode == Enforce {
		r.Limit = max(a.rule.Permits-of.Headroom, 0)
	}
	_, _ = rand.Read(r.ID[:]) // never fails
	if v.Decision, err = e.permits.AcquirePermit(ctx, r); err != nil {
		e.observe(a, Failed, err)
		return v, err
	}
	v.ID = r.ID
	if r.Limit == 0 {
		v.RetryAfter = headgate.Never // more permits would have to be free than there are
	}
	v.ShadowDenied = v.Shadow && (a.banned || v.InUse > a.rule.Permits-of.Headroom)
	e.observePermit(a, &v)
	return v, nil
}

func (e *Engine) observePermit(a *ask, v *PermitAnswer) {
	a.decisions = []headgate.Decision{{RetryAfter: v.RetryAfter}}
	a.banned = false // a ban in shadow denies nothing
	switch {
	case !v.Allowed():
		e.observe(a, Denied, nil)
	case v.ShadowDenied:
		e.observe(a, ShadowDenied, nil)
	default:
		e.observe(a, Allowed, nil)
	}
}
