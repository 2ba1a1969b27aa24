package rules

import (
	"context"

	"github.com/headgate/headgate"
)

// decideShadow decides the rules in shadow: what one denies changes nothing for the others. It
// charges them if the request was allowed, and peeks if not, because then the request is not
// carried out. For a rule that counts denials, it is the reverse: it is charged if the denial
// counts. An error denies nothing.
func (q *Question) decideShadow(ctx context.Context, countsDenial bool) {
	for a := range q.of(shadows) {
		a.granted = q.granted
		if a.rule.Count.Denied && a.cost > 0 {
			a.granted, a.cost = countsDenial, 1
		}
		if !a.granted {
			a.cost = min(a.cost, 0)
		}
		if a.cost > 0 {
			a.err = q.permit(ctx, a)
		}
		a.note(q)
	}
	q.shadowDecisions = q.shadowDecisions[:0]
	for q.takeShadow(ctx) {
	}
	for i := range q.asks {
		a := &q.asks[i]
		if a.part() != shadows {
			continue
		}
		fits := a.err == nil && a.fits(0)
		a.granted = a.granted && fits
		switch {
		case a.err != nil:
			q.engine.observe(a, Failed, a.err)
		case fits:
			q.engine.observe(a, Allowed, nil)
		default:
			q.engine.observe(a, ShadowDenied, nil)
		}
	}
}

// takeShadow asks the store for the rules in shadow together, in one trip. If some deny, which
// keeps the others from being charged, it reports that those must be asked again, without them.
func (q *Question) takeShadow(ctx context.Context) (again bool) {
	q.requests = q.requests[:0]
	for a := range q.of(shadows) {
		if a.err == nil && a.fits(0) {
			q.requests = a.appendRequests(q.requests, a.cost, Order{Force: q.order.Force})
		}
	}
	n := len(q.shadowDecisions)
	q.shadowDecisions = append(q.shadowDecisions, make([]headgate.Decision, len(q.requests))...)
	rest := q.shadowDecisions[n:]
	err := take(ctx, q.engine.store, q.requests, rest)
	again = err == nil && !headgate.Granted(q.requests, rest)
	for a := range q.of(shadows) {
		if a.err == nil && a.fits(0) {
			n := len(a.limits)
			a.err, a.decisions, rest = err, rest[:n:n], rest[n:]
		}
	}
	return again
}
