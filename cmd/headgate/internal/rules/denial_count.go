package rules

import (
	"context"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/await"
)

// This file decides rules that count denials. Such a rule denies while its limits are exceeded, and
// is charged 1 by each request that another rule denies. What it denies itself it does not count,
// so that its denials end, however often a client asks.

// guarded decides the rules that count denials, then the others, and counts what those deny.
func (e *Engine) guarded(ctx context.Context, s *scratch) (Verdict, error) {
	if len(s.guards) == 0 {
		return e.enforce(ctx, s)
	}
	for _, charges := range [][]charge{s.guards, s.enforced} {
		if v, banned := e.banned(charges); banned {
			return v, nil
		}
	}
	peeks := s.group(s.guards)
	for i := range peeks {
		peeks[i].Cost = 0
	}
	guard, err := e.take(ctx, s.guards, peeks)
	e.refuse(s.guards, &guard, err)
	if err != nil || !guard.Allowed {
		return guard, err
	}
	v, err := e.enforce(ctx, s)
	switch {
	case err != nil:
	case v.Allowed:
		e.grant(s.guards, guard.Decisions)
	case s.countsDenial(&v):
		e.countDenial(ctx, s)
	}
	return v, err
}

// countsDenial reports whether v is a denial that rules count: another rule denied, by a limit or
// a permit. A ban needs no second one, and a denial without a check of the limit says nothing about
// the client.
func (s *scratch) countsDenial(v *Verdict) bool {
	return v.Reason == Permits || v.Reason == Limits &&
		!s.active.byName[v.Rule].Count.Denied && !headgate.Strictest(v.Decisions).Unchecked()
}

// countDenial charges the rules that count denials, unless it does not fit. It goes on if ctx ends:
// a client that leaves at once is counted, too.
func (e *Engine) countDenial(ctx context.Context, s *scratch) {
	ctx, cancel := await.Settling(ctx, true)
	defer cancel()
	requests := s.group(s.guards)
	err := Take(ctx, e.store, requests, make([]headgate.Decision, len(requests)))
	for i := 0; i < len(s.guards) && err != nil; i++ {
		e.observe(&s.guards[i], Failed, headgate.Decision{}, err)
	}
}
