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
	late    []ask // whose cost is in the response
	counted []ask // which the status of the response may refund
	held    []held
}

// held is a permit that is renewed until stop is called.
type held struct {
	permit *concurrency.Permit
	stop   context.CancelFunc
}

// Begin is [Question.Decide] for callers that see the end of the request: it also acquires the
// permits of rules. The Admission is nil if the request was denied.
func (q *Question) Begin(ctx context.Context) (v Verdict, begun *Admission, err error) {
	defer q.free()
	a := &Admission{engine: q.engine}
	defer func() {
		if begun == nil { // also after a panic
			a.End(ctx)
		}
	}()
	q.admission = a
	v, err = q.decide(ctx)
	if err != nil || !v.Allowed {
		return v, nil, err
	}
	for i := range q.asks {
		c := &q.asks[i]
		if !c.granted {
			continue
		}
		if c.rule.late {
			a.late = append(a.late, c.charged())
		}
		if len(c.rule.Count.Statuses) > 0 &&
			(c.rule.Mode == Shadow || !c.strictest().Unchecked()) {
			a.counted = append(a.counted, *c)
			a.counted[len(a.counted)-1].decisions = nil // of the next Question
		}
	}
	return v, a, nil
}

// Settle charges the costs that response holds, whether or not they fit, and reports whether all
// were there. A cost that is not there stays pending: it may be in a trailer. What is never
// settled, or is no number, stays at the estimate. It goes on if ctx ends.
func (a *Admission) Settle(ctx context.Context, response http.Header) (all bool) {
	var known []ask
	a.late = slices.DeleteFunc(a.late, func(c ask) bool {
		values := response.Values(c.rule.Cost.ResponseHeader)
		if len(values) == 0 {
			return false
		}
		cost, ok := number(values[0])
		if !ok {
			a.engine.observe(&c, Failed, fmt.Errorf(
				"rules: the cost in %s is %.40q; want a whole number from 0 to %d",
				c.rule.Cost.ResponseHeader, values[0], int64(maxCost)))
			return true
		}
		if a.engine.settled(&c, cost, true) {
			known = append(known, c)
		}
		return true
	})
	if len(known) > 0 {
		a.engine.settle(ctx, known)
	}
	return len(a.late) == 0
}

// settle charges the costs of asks, or refunds those below 0. It goes on if ctx ends.
func (e *Engine) settle(ctx context.Context, asks []ask) {
	var requests []headgate.Request
	for i := range asks {
		requests = asks[i].appendSettling(requests)
	}
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	err := take(ctx, e.store, requests, make([]headgate.Decision, len(requests)))
	for i := 0; i < len(asks) && err != nil; i++ {
		e.observe(&asks[i], Failed, err)
	}
}

// appendSettling appends the requests that charge the cost of a whether or not it fits: it is used
// already. A cost below 0 is refunded to the grant of a, or cancels a grant that was booked ahead.
func (a *ask) appendSettling(rs []headgate.Request) []headgate.Request {
	for _, l := range a.limits {
		r := headgate.Request{Key: a.key, Limit: l, Cost: a.cost, Force: a.cost > 0}
		if a.cost < 0 {
			r.Start = a.start
			if a.start == nil || !a.start.After(time.Now()) {
				r = r.Refund(-a.cost)
			}
		}
		rs = append(rs, r)
	}
	return rs
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
