package rules

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// Verdict is the answer to a request. The zero Verdict denies.
type Verdict struct {
	Allowed bool

	// Decisions are those of the limits of all rules that enforce, in the order of the rules. There
	// is none if a ban or a permit denied, and if no rule applies. If a rule that counts denials
	// denied, they are those of such rules, which are not there otherwise.
	Decisions []headgate.Decision

	// Rule is the name of the rule that denied; of several, the one that denied for the longest.
	Rule   string
	Reason Reason

	// RetryAfter is the wait after which the request may be granted; [headgate.Never] if no wait
	// helps.
	RetryAfter time.Duration
}

// Reason says what denied a request.
type Reason uint8

// The reasons.
const (
	None    Reason = iota // it was allowed
	Limits                // a limit is exceeded
	Permits               // too many requests at once
	Ban                   // an override bans the key
)

// decide decides the charges of s: first those of rules that enforce, all or none, and then those
// of each rule in shadow.
func (e *Engine) decide(ctx context.Context, s *scratch) (Verdict, error) {
	v, err := e.guarded(ctx, s)
	if err != nil {
		return Verdict{}, err
	}
	e.decideShadow(ctx, s, &v)
	return v, nil
}

func (e *Engine) enforce(ctx context.Context, s *scratch) (Verdict, error) {
	if v, banned := e.banned(s.enforced); banned {
		return v, nil
	}
	if v, denied, err := e.permitsOf(ctx, s); denied || err != nil {
		return v, err
	}
	v, err := e.take(ctx, s.enforced, s.group(s.enforced))
	if err == nil && !v.Allowed && len(s.active.waiting) > 0 {
		v, err = e.hold(ctx, s, v)
	}
	e.refuse(s.enforced, &v, err)
	if v.Allowed {
		e.grant(s.enforced, v.Decisions)
	}
	return v, err
}

// take decides the requests of charges together.
func (e *Engine) take(
	ctx context.Context, charges []charge, requests []headgate.Request,
) (Verdict, error) {
	var ds []headgate.Decision
	if len(requests) > 0 {
		ds = make([]headgate.Decision, len(requests))
	}
	if err := Take(ctx, e.store, requests, ds); err != nil {
		return Verdict{}, err
	}
	return verdict(charges, ds), nil
}

// verdict returns what ds, the decisions of charges, mean together.
func verdict(charges []charge, ds []headgate.Decision) Verdict {
	v := Verdict{Allowed: true, Decisions: ds}
	for i := range charges {
		c := &charges[i]
		d := c.strictest(ds)
		if !c.allowed(d) && (v.Allowed || d.RetryAfter > v.RetryAfter) {
			v.Allowed, v.Rule, v.Reason, v.RetryAfter = false, c.rule.Name, Limits, d.RetryAfter
		}
	}
	return v
}

// refuse observes which of charges denied, or that err kept them from deciding.
func (e *Engine) refuse(charges []charge, v *Verdict, err error) {
	for i := range charges {
		c := &charges[i]
		switch {
		case err != nil:
			e.observe(c, Failed, headgate.Decision{}, err)
		case v.Allowed:
			return
		default:
			if d := c.strictest(v.Decisions); !c.allowed(d) {
				e.observe(c, Denied, d, nil)
			}
		}
	}
}

// grant notes and observes that charges were granted.
func (e *Engine) grant(charges []charge, ds []headgate.Decision) {
	for i := range charges {
		c := &charges[i]
		c.granted = true
		e.observe(c, Allowed, c.strictest(ds), nil)
	}
}

// banned returns the denial of the first key that is banned.
func (e *Engine) banned(charges []charge) (Verdict, bool) {
	for i := range charges {
		c := &charges[i]
		if !c.banned {
			continue
		}
		wait := headgate.Never
		if !c.until.IsZero() {
			wait = max(time.Until(c.until), time.Second)
		}
		e.observe(c, Denied, headgate.Decision{RetryAfter: wait}, nil)
		return Verdict{Rule: c.rule.Name, Reason: Ban, RetryAfter: wait}, true
	}
	return Verdict{}, false
}

// Take decides any number of requests together, in one trip.
func Take(
	ctx context.Context, s headgate.Store, rs []headgate.Request, ds []headgate.Decision,
) (err error) {
	switch len(rs) {
	case 0:
		return nil
	case 1:
		ds[0], err = s.Take(ctx, rs[0])
		return err
	}
	return s.TakeAll(ctx, rs, ds)
}

// allowed reports whether c is granted by d, the strictest of its decisions.
func (c *charge) allowed(d headgate.Decision) bool { return len(c.limits) == 0 || d.Allowed() }

// strictest returns the strictest of the decisions of c.
func (c *charge) strictest(ds []headgate.Decision) headgate.Decision {
	if len(c.limits) == 0 {
		return headgate.Decision{}
	}
	return headgate.Strictest(ds[c.first : c.first+len(c.limits)])
}

func (e *Engine) observe(c *charge, o Outcome, d headgate.Decision, err error) {
	if e.options.Observe != nil {
		e.options.Observe(Event{
			Rule: &c.rule.Rule, Request: c.request, Key: c.key, Cost: c.cost,
			Outcome: o, Decision: d, Banned: c.banned && o == Denied, Err: err,
		})
	}
}
