package httpapi

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/await"
)

// countsDenials reports whether t is charged only if another target of the request is denied.
func (t *target) countsDenials() bool {
	return t.terms.Rule != nil && t.terms.Rule.Count.Denied && t.cost > 0
}

// blocked reports whether a target that counts denials denies.
func (h *Handler) blocked(ctx context.Context, answers []answer) (bool, error) {
	var peeks []headgate.Request
	for i := range answers {
		if t := answers[i].target; t.countsDenials() && t.enforced() {
			peeks = answers[i].appendRequests(peeks, order{}, true)
		}
	}
	decisions := make([]headgate.Decision, len(peeks))
	err := rules.Take(ctx, h.options.Store, peeks, decisions)
	return !headgate.Strictest(decisions).Allowed(), err
}

// countDenial charges 1 to the targets that count denials, unless it does not fit. It goes on if
// ctx ends.
func (h *Handler) countDenial(ctx context.Context, answers []answer) {
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	for _, a := range answers {
		if !a.target.countsDenials() {
			continue
		}
		var requests []headgate.Request
		for _, l := range a.target.limits() {
			requests = append(requests, headgate.Request{Key: a.target.key, Limit: l, Cost: 1})
		}
		err := rules.Take(ctx, h.options.Store, requests, make([]headgate.Decision, len(requests)))
		if err != nil {
			h.observe(a.target, rules.Failed, headgate.Decision{}, err)
		}
	}
}
