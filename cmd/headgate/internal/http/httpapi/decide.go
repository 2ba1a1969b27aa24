package httpapi

import (
	"context"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// decide asks a, and returns the only answer.
func (h *Handler) decide(ctx context.Context, a *asked, o rules.Order) (rules.Answer, error) {
	answers, _, err := h.decideAll(ctx, o, a.Ask)
	if err != nil {
		return rules.Answer{}, err
	}
	return answers[0], nil
}

// decideAll returns an error, too, if a fallback denied, and has not checked a limit: the store is
// unavailable, and nothing is exceeded.
func (h *Handler) decideAll(
	ctx context.Context, o rules.Order, asks ...rules.Ask,
) (answers []rules.Answer, granted bool, err error) {
	answers, granted, err = h.options.Engine.Answer(ctx, o, asks...)
	if err != nil {
		return nil, false, err
	}
	var retry time.Duration
	for i := range answers {
		switch a := &answers[i]; {
		case a.Allowed:
		case !a.Strictest.Unchecked():
			return answers, granted, nil
		default:
			retry = max(retry, a.Strictest.RetryAfter)
		}
	}
	if retry == 0 {
		return answers, granted, nil
	}
	p := problem.Unavailable(problem.Unchecked)
	p.RetryAfter = retry
	return nil, false, p
}
