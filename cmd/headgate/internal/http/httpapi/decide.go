package httpapi

import (
	"context"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// decide asks a, and returns the only answer.
func (h *Handler) decide(ctx context.Context, a *asked, o rules.Order) (v rules.Answer, err error) {
	q, err := h.question(a, o)
	if err != nil {
		return v, err
	}
	answers, _, err := decide(ctx, q)
	if err != nil {
		return v, err
	}
	return answers[0], nil
}

// decide returns an error, too, if a fallback denied, and has not checked a limit: the store is
// unavailable, and nothing is exceeded.
func decide(ctx context.Context, q *rules.Question) (answers []rules.Answer, all bool, err error) {
	answers, all, err = q.Answer(ctx)
	if err != nil {
		return nil, false, err
	}
	var retry time.Duration
	for i := range answers {
		switch a := &answers[i]; {
		case a.Allowed:
		case !a.Strictest.Unchecked():
			return answers, all, nil
		default:
			retry = max(retry, a.Strictest.RetryAfter)
		}
	}
	if retry == 0 {
		return answers, all, nil
	}
	p := problem.Unavailable(problem.Unchecked)
	p.RetryAfter = retry
	return nil, false, p
}
