package rules

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/await"
)

// Admission is a request that was allowed and is under way, with its permits and its costs that are
// not known yet. Its caller calls [Admission.Settle] once a cost is known, [Admission.SettleUsage]
// after the response, and [Admission.End] in the end. One goroutine at a time may use it.
type Admission struct {
	engine  *Engine
	late    []charge // whose cost is in the response
	counted []charge // which the status of the response may refund
	held    []held
	waited  time.Duration // for permits
}

// held is a permit that is renewed until stop is called.
type held struct {
	permit *concurrency.Permit
	stop   context.CancelFunc
}

// permitPause is the Retry-After of a request that found no permit: one is free when another
// request ends, which no store can foresee.
const permitPause = time.Second

// Begin is [Engine.Decide] for callers that see the end of the request: it also acquires the
// permits of rules. The Admission is nil if the request was denied.
func (e *Engine) Begin(ctx context.Context, q *Request) (v Verdict, begun *Admission, err error) {
	s := e.prepare()
	defer e.free(s)
	s.match(q)
	a := &Admission{engine: e}
	defer func() {
		if begun == nil { // also after a panic
			a.End(ctx)
		}
	}()
	s.admission = a
	v, err = e.decide(ctx, s)
	if err != nil || !v.Allowed {
		return v, nil, err
	}
	for _, charges := range [][]charge{s.enforced, s.shadow} {
		for _, c := range charges {
			if c.rule.late && c.granted {
				a.late = append(a.late, c.charged(v.Decisions))
			}
			if len(c.rule.Count.Statuses) > 0 && c.granted &&
				(c.rule.Mode == Shadow || !c.strictest(v.Decisions).Unchecked()) {
				a.counted = append(a.counted, c)
			}
		}
	}
	return v, a, nil
}

// permit acquires a permit for c, if its rule has permits and the caller holds them.
func (s *scratch) permit(ctx context.Context, c *charge) (free bool, err error) {
	l := s.active.permits[c.rule]
	if l == nil || s.admission == nil {
		return true, nil
	}
	p, _, err := l.AcquireWithHeadroom(ctx, PermitKey(c.rule.Name, c.key),
		partOf(c.percent, c.rule.Permits))
	if p == nil && err == nil && c.percent == 0 && c.rule.holds() {
		p, err = s.waitForPermit(ctx, c, l)
	}
	if p == nil {
		return false, err
	}
	// If the store fails for longer than the permit lasts, another request may have the place. The
	// request goes on: to cut it off would help nobody.
	_, stop := p.Keep(context.WithoutCancel(ctx))
	s.admission.held = append(s.admission.held, held{p, stop})
	return true, nil
}

// permitsOf acquires the permits of all rules that enforce, or returns the denial.
func (e *Engine) permitsOf(ctx context.Context, s *scratch) (v Verdict, denied bool, err error) {
	for i := range s.enforced {
		c := &s.enforced[i]
		free, err := s.permit(ctx, c)
		if err != nil {
			e.observe(c, Failed, headgate.Decision{}, err)
			return Verdict{}, false, err
		}
		if !free {
			e.observe(c, Denied, headgate.Decision{RetryAfter: permitPause}, nil)
			return Verdict{Rule: c.rule.Name, Reason: Permits, RetryAfter: permitPause}, true, nil
		}
	}
	return Verdict{}, false, nil
}

// Settle charges the costs that response holds, whether or not they fit, and reports whether all
// were there. A cost that is not there stays pending: it may be in a trailer. What is never
// settled, or is no number, stays at the estimate. It goes on if ctx ends.
func (a *Admission) Settle(ctx context.Context, response http.Header) (all bool) {
	var known []charge
	a.late = slices.DeleteFunc(a.late, func(c charge) bool {
		values := response.Values(c.rule.Cost.ResponseHeader)
		if len(values) == 0 {
			return false
		}
		cost, ok := number(values[0])
		if !ok {
			a.engine.observe(&c, Failed, headgate.Decision{}, fmt.Errorf(
				"rules: the cost in %s is %.40q; want a whole number from 0 to %d",
				c.rule.Cost.ResponseHeader, values[0], int64(maxCost)))
			return true
		}
		if a.engine.settle(&c, cost, true) {
			known = append(known, c)
		}
		return true
	})
	if len(known) > 0 {
		a.charge(ctx, known)
	}
	return len(a.late) == 0
}

// charge charges more than was taken before the request, or refunds it.
func (a *Admission) charge(ctx context.Context, charges []charge) {
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	var requests []headgate.Request
	for _, c := range charges {
		for _, l := range c.limits {
			r := headgate.Request{Key: c.key, Limit: l, Cost: c.cost, Force: true}
			if c.cost < 0 {
				r.Start = c.start
				r = r.Refund(-c.cost)
			}
			requests = append(requests, r)
		}
	}
	err := Take(ctx, a.engine.store, requests, make([]headgate.Decision, len(requests)))
	for i := 0; i < len(charges) && err != nil; i++ {
		a.engine.observe(&charges[i], Failed, headgate.Decision{}, err)
	}
}

// End releases the permits. It goes on if ctx ends.
func (a *Admission) End(ctx context.Context) {
	if len(a.held) == 0 {
		return
	}
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	for _, h := range a.held {
		h.stop()
		_ = h.permit.Release(ctx) // if that fails, the permit expires
	}
	a.held = nil
}
