package rules

import (
	"context"

	"github.com/headgate/headgate"
)

// decideShadow decides each rule in shadow by itself. It charges them if the request was allowed,
// and peeks if not, because then the request is not carried out. For a rule that counts denials, it
// is the reverse. An error denies nothing.
func (e *Engine) decideShadow(ctx context.Context, s *scratch, v *Verdict) {
	for i := range s.shadow {
		c := &s.shadow[i]
		counts := v.Allowed
		if c.rule.Count.Denied {
			counts = s.countsDenial(v)
		}
		if !counts {
			c.cost = 0
		}
		d, granted, err := e.decideOneShadow(ctx, s, i)
		switch {
		case err != nil:
			e.observe(c, Failed, headgate.Decision{}, err)
		case granted:
			c.granted = counts
			e.observe(c, Allowed, d, nil)
		default:
			e.observe(c, ShadowDenied, d, nil)
		}
	}
}

func (e *Engine) decideOneShadow(
	ctx context.Context, s *scratch, i int,
) (d headgate.Decision, granted bool, err error) {
	c := &s.shadow[i]
	if c.banned {
		return d, false, nil
	}
	if c.cost != 0 {
		if free, err := s.permit(ctx, c); !free || err != nil {
			return d, false, err
		}
	}
	requests := s.group(s.shadow[i : i+1])
	s.answers = append(s.answers[:0], make([]headgate.Decision, len(requests))...)
	if err := Take(ctx, e.store, requests, s.answers); err != nil {
		return d, false, err
	}
	d = c.strictest(s.answers)
	return d, c.allowed(d), nil
}
