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

// acquire acquires the permits of rules that enforce, in their order, and reports whether all were
// free. It does not ask for all at the same time: a request that one rule denies, or that waits for
// its permit, would keep those of the rules behind it from other clients.
func (q *Question) acquire(ctx context.Context) (free bool, err error) {
	for a := range q.of(enforces) {
		if err := q.permit(ctx, a); err != nil {
			q.engine.observe(a, Failed, err)
			return false, err
		}
		if a.full {
			return false, nil
		}
	}
	return true, nil
}

// permit acquires a permit for a, if its rule has permits, and the caller sees the end of the
// request. If none is free, a is full.
func (q *Question) permit(ctx context.Context, a *ask) error {
	l := q.active.permits[a.rule]
	if l == nil || q.admission == nil {
		return nil
	}
	p, _, err := l.AcquireWithHeadroom(ctx, PermitKey(a.rule.Name, a.key),
		partOf(a.percent, a.rule.Permits))
	if p == nil && err == nil && a.percent == 0 && a.rule.holds() {
		p, err = q.waitForPermit(ctx, a, l)
	}
	if a.asked, a.full = true, p == nil; a.full {
		return err
	}
	// If the store fails for longer than the permit lasts, another request may have the place. The
	// request goes on: to cut it off would help nobody.
	_, stop := p.Keep(context.WithoutCancel(ctx))
	q.admission.held = append(q.admission.held, held{p, stop})
	return nil
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
// not enforce denies none. An error that is no [headgate.InvalidError], [KeyError] or [NoRuleError]
// is one of the store.
func (e *Engine) AcquirePermit(
	ctx context.Context, of Ask, ttl time.Duration,
) (v PermitAnswer, err error) {
	of.Cost = 1
	q := e.question(Order{})
	defer q.free()
	q.named = true
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
		if a.rule.Mode == Enforce {
			return v, err
		}
		v.ID, v.Limit = r.ID, r.Limit // it is not known how many are in use
		return v, nil
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
