package rules

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
)

// This file decides rules that count denials. Such a rule denies while its limits are exceeded, and
// is charged 1 by each request that another rule denies. What it denies itself it does not count,
// so that its denials end, however often a client asks.

// countsDenial reports whether v is a denial that rules count: another rule denied, by a limit or
// a permit. A ban needs no second one, and a denial without a check of the limit says nothing about
// the client.
func (q *Question) countsDenial(v *Verdict) bool {
	if v.Allowed || v.Reason == Ban {
		return false
	}
	for a := range q.of(enforces) {
		if a.asked && !a.fits(q.order.MaxWait) && !a.strictest().Unchecked() {
			return true
		}
	}
	return false
}

// countDenial charges the rules that count denials, if it fits. It goes on if ctx ends: a client
// that leaves at once is counted, too.
func (q *Question) countDenial(ctx context.Context) {
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	requests := q.requests[:0]
	for a := range q.of(guards) {
		requests = a.appendRequests(requests, 1, Order{})
	}
	q.requests = requests
	err := take(ctx, q.engine.store, requests, make([]headgate.Decision, len(requests)))
	if err != nil {
		q.fail(guards, err)
	}
}
