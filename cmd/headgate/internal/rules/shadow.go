package rules

import (
	"context"

	"github.com/headgate/headgate"
)

// decideShadow decides each rule in shadow by itself, all at the same time. It charges them if the
// request was allowed, and peeks if not, because then the request is not carried out. For a rule
// that counts denials, it is the reverse: it is charged if the denial counts. An error denies
// nothing.
func (q *Question) decideShadow(ctx context.Context, countsDenial bool) {
	q.prepareShadow(countsDenial)
	q.together(ctx, q.some, (*Question).decideOneShadow)
	for _, a := range q.some { // before a call of Observe panics
		q.keep(ctx, a)
	}
	for _, a := range q.some {
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

// prepareShadow finds the asks in shadow, and makes room for what they ask the store.
func (q *Question) prepareShadow(countsDenial bool) {
	q.some, q.requests = q.some[:0], q.requests[:0]
	for i := range q.asks {
		a := &q.asks[i]
		if a.part() != shadows {
			continue
		}
		a.granted = q.granted
		if a.rule.Count.Denied && a.cost > 0 {
			a.granted, a.cost = countsDenial, 1
		}
		if !a.granted {
			a.cost = min(a.cost, 0)
		}
		a.note(q)
		a.first = len(q.requests)
		q.requests = a.appendRequests(q.requests, a.cost, Order{Force: q.order.Force})
		q.some = append(q.some, a)
	}
	q.answers = append(q.answers[:0], make([]headgate.Decision, len(q.requests))...)
}

func (q *Question) decideOneShadow(ctx context.Context, a *ask) {
	if a.banned {
		return
	}
	if a.cost > 0 {
		if q.tryPermit(ctx, a); a.full || a.err != nil {
			return
		}
	}
	end := a.first + len(a.limits)
	ds := q.answers[a.first:end:end]
	if a.err = take(ctx, q.engine.store, q.requests[a.first:end], ds); a.err == nil {
		a.asked, a.decisions = true, ds
	}
}
