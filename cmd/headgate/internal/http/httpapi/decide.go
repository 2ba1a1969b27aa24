package httpapi

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/problem"
)

// answer is what was decided about one target.
type answer struct {
	target    *target
	allowed   bool
	decisions []headgate.Decision // one for each limit; none without limits, and for a ban
	wait      time.Duration       // until a grant that was booked ahead
	starts    []time.Time         // of that grant, one for each limit
	err       error               // of a rule in shadow, which denies nothing
}

// order is how targets are charged.
type order struct {
	maxWait time.Duration
	starts  bool // note the start times
	force   bool // charge what does not fit, too
	hold    bool // of one target: wait if its rule holds requests
}

// decide charges targets: those that enforce together, all or none; then those in shadow, each by
// itself, if the others granted. It reports whether all were granted.
func (h *Handler) decide(
	ctx context.Context, targets []*target, o order,
) (answers []answer, granted bool, err error) {
	answers = make([]answer, len(targets))
	banned := false
	for i, t := range targets {
		answers[i].target = t
		banned = banned || t.enforced() && t.banned() && t.cost > 0
	}
	blocked, err := h.blocked(ctx, answers)
	if err == nil {
		granted, err = h.enforce(ctx, answers, o, !banned && !blocked)
	}
	if err == nil && !granted && o.hold && !blocked {
		granted, err = h.hold(ctx, &answers[0])
	}
	if err != nil {
		for _, t := range targets {
			h.observe(t, rules.Failed, headgate.Decision{}, err)
		}
		return nil, false, err
	}
	for i := range answers {
		if a := &answers[i]; !a.target.enforced() {
			h.shadow(ctx, a, order{force: o.force}, granted)
		}
		h.report(&answers[i], granted)
	}
	err = unchecked(answers)
	if !granted && !banned && !blocked && err == nil {
		h.countDenial(ctx, answers)
	}
	return answers, granted, err
}

// unchecked returns an error if a fallback denied, and has not checked a limit: the store is
// unavailable, and nothing is exceeded.
func unchecked(answers []answer) error {
	var retry time.Duration
	for i := range answers {
		switch d := answers[i].strictest(); {
		case answers[i].allowed:
		case !d.Unchecked():
			return nil
		default:
			retry = max(retry, d.RetryAfter)
		}
	}
	if retry == 0 {
		return nil
	}
	p := problem.Unavailable(problem.Unchecked)
	p.RetryAfter = retry
	return p
}

// enforce decides those of answers that can deny, together. Unless charge, it only peeks.
func (h *Handler) enforce(
	ctx context.Context, answers []answer, o order, charge bool,
) (granted bool, err error) {
	var requests []headgate.Request
	for i := range answers {
		a := &answers[i]
		if !a.target.enforced() || a.target.banned() {
			continue
		}
		requests = a.appendRequests(requests, o, charge)
	}
	decisions := make([]headgate.Decision, len(requests))
	if err := rules.Take(ctx, h.options.Store, requests, decisions); err != nil {
		return false, err
	}
	granted = charge && headgate.Granted(requests, decisions)
	distribute(answers, decisions, o.maxWait, granted)
	return granted, nil
}

// distribute gives the answers of targets that enforce their decisions.
func distribute(
	answers []answer, decisions []headgate.Decision, maxWait time.Duration, granted bool,
) {
	var start time.Duration // all grants have one
	for _, d := range decisions {
		start = max(start, d.RetryAfter)
	}
	for i := range answers {
		a := &answers[i]
		if !a.target.enforced() {
			continue
		}
		if !a.target.banned() {
			n := len(a.target.limits())
			a.decisions, decisions = decisions[:n:n], decisions[n:]
		}
		a.allowed = a.fits(maxWait)
		if granted && a.target.cost > 0 && maxWait > 0 {
			a.wait = start
		}
	}
}

// hold waits for the turn of a, if its rule holds requests.
func (h *Handler) hold(ctx context.Context, a *answer) (granted bool, err error) {
	t := a.target
	if t.rule == "" || t.cost <= 0 || t.headroom > 0 || t.banned() || !t.enforced() {
		return false, nil
	}
	a.allowed, err = h.options.Rules.Hold(ctx, &t.terms, t.key, t.cost, a.decisions)
	return a.allowed, err
}

// shadow decides a target that cannot deny.
func (h *Handler) shadow(ctx context.Context, a *answer, o order, charge bool) {
	a.allowed = true
	if a.target.banned() {
		return
	}
	requests := a.appendRequests(nil, o, charge)
	a.decisions = make([]headgate.Decision, len(requests))
	if a.err = rules.Take(ctx, h.options.Store, requests, a.decisions); a.err != nil {
		a.decisions = nil
	}
}

// appendRequests appends the requests of a, one for each of its limits.
func (a *answer) appendRequests(rs []headgate.Request, o order, charge bool) []headgate.Request {
	limits := a.target.limits()
	if o.starts {
		a.starts = make([]time.Time, len(limits))
	}
	for i, l := range limits {
		r := headgate.Request{
			Key: a.target.key, Limit: l, Cost: a.target.cost, Headroom: a.target.headroom,
		}
		switch {
		case (!charge || a.target.countsDenials()) && r.Cost > 0:
			r.Cost = 0
		case r.Cost > 0:
			r.MaxWait, r.Force = o.maxWait, o.force
			if o.starts {
				r.Start = &a.starts[i]
			}
		}
		rs = append(rs, r)
	}
	return rs
}

// charged reports whether a, decided by itself, was charged.
func (a *answer) charged() bool {
	return a.allowed && a.err == nil && (a.target.enforced() || a.fits(0))
}

// fits reports whether the limits of a would grant it within maxWait.
func (a *answer) fits(maxWait time.Duration) bool {
	if a.target.banned() {
		return false
	}
	for _, d := range a.decisions {
		if a.target.cost >= 0 && !d.Within(maxWait) {
			return false
		}
	}
	return true
}

// strictest returns the decision to show.
func (a *answer) strictest() headgate.Decision {
	switch {
	case a.target.banned():
		end := a.target.banEnds()
		return headgate.Decision{RetryAfter: end, ResetAfter: end}
	case len(a.decisions) == 0:
		return headgate.Decision{Limit: headgate.Unlimited()}
	}
	return headgate.Strictest(a.decisions)
}

// report observes what was decided about a, if it was to be charged.
func (h *Handler) report(a *answer, granted bool) {
	d := a.strictest()
	fits := a.fits(0) || granted && a.wait > 0
	switch {
	case a.err != nil:
		h.observe(a.target, rules.Failed, headgate.Decision{}, a.err)
	case a.target.terms.Mode == rules.Shadow && !fits:
		h.observe(a.target, rules.ShadowDenied, d, nil)
	case !fits:
		h.observe(a.target, rules.Denied, d, nil)
	case granted:
		h.observe(a.target, rules.Allowed, d, nil)
	}
}

func (h *Handler) observe(t *target, o rules.Outcome, d headgate.Decision, err error) {
	if t.rule != "" && t.cost > 0 && t.terms.Mode != rules.Off {
		h.options.Observe(rules.Event{
			Rule: t.terms.Rule, Key: t.key, Cost: t.cost, Outcome: o,
			Decision: d, Banned: t.banned() && o == rules.Denied, Err: err,
		})
	}
}
