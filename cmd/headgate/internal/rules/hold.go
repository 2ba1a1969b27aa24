package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// This file holds requests over a limit until their turn, in rules with MaxWait.

const (
	// The HTTP listener ends requests after 30 s.
	minMaxWait, maxMaxWait = time.Millisecond, 20 * time.Second

	// DefaultMaxWaiting is how many requests of a rule wait at once if MaxWaiting is 0.
	DefaultMaxWaiting = 100

	// MaxMaxWaiting is the largest MaxWaiting.
	MaxMaxWaiting = 100_000
)

// ParseMaxWait reads the max_wait of a rule, such as 2s.
func ParseMaxWait(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < minMaxWait || d > maxMaxWait {
		return 0, fmt.Errorf("%q is not a wait; want a time from 1ms to 20s, such as 2s", text)
	}
	return d, nil
}

func (r *Rule) checkMaxWait() error {
	if r.MaxWait == 0 {
		return nil
	}
	if r.Count.Denied {
		return errors.New("cannot be used with count: denied; want it in the rules that deny")
	}
	_, err := ParseMaxWait(r.MaxWait.String())
	return err
}

func (r *Rule) checkMaxWaiting() error {
	switch {
	case r.MaxWaiting < 0 || r.MaxWaiting > MaxMaxWaiting:
		return fmt.Errorf("is %d; want 1 to %d", r.MaxWaiting, MaxMaxWaiting)
	case r.MaxWaiting > 0 && r.MaxWait == 0:
		return errors.New("is given without max_wait; want both, or max_wait alone")
	}
	return nil
}

func (r *rule) holds() bool { return r.MaxWait > 0 && r.Mode == Enforce }

// holds is what an [Engine] holds requests with.
type holds struct {
	limiter *headgate.Limiter // without limits, for its lines
	ending  context.Context   //nolint:containedctx // ends with Engine.EndHolds
	end     context.CancelFunc
}

func newHolds(store headgate.Store) (h holds) {
	h.ending, h.end = context.WithCancel(context.Background())
	h.limiter, _ = headgate.NewLimiterFunc(store, // fails only without a store
		func(context.Context, string) ([]headgate.Limit, error) { return nil, nil })
	return h
}

// EndHolds denies the requests that wait, and lets none wait from now on.
func (e *Engine) EndHolds() { e.holds.end() }

// Waiting calls f with how many requests wait in each rule that holds them.
func (e *Engine) Waiting(f func(rule string, n int64)) {
	for rule, n := range e.active.Load().waiting {
		f(rule, n.Load())
	}
}

// countWaiting returns a counter for each rule of s that holds requests, the one of before if there
// is one.
func (s *Set) countWaiting(before map[string]*atomic.Int64) map[string]*atomic.Int64 {
	counts := make(map[string]*atomic.Int64)
	for _, r := range s.rules {
		if r.holds() {
			counts[r.Name] = cmp.Or(before[r.Name], new(atomic.Int64))
		}
	}
	return counts
}

// Hold waits for the turn of a key, whose limits denied cost with ds, if its rule holds requests.
// If it is granted, ds are what Hold leaves.
func (e *Engine) Hold(
	ctx context.Context, t *Terms, key string, cost int64, ds []headgate.Decision,
) (granted bool, err error) {
	s := e.prepare()
	defer e.free(s)
	r := s.active.byName[t.Rule.Name]
	if r == nil || !r.holds() {
		return false, nil
	}
	s.enforced = append(s.enforced, charge{
		rule: r, key: key, cost: cost, limits: t.Limits, start: new(time.Time),
	})
	v, err := e.hold(ctx, s, verdict(s.enforced, ds))
	copy(ds, v.Decisions)
	return v.Allowed, err
}

// hold waits for the turn of each rule that denies, the one with the longest wait first, and
// then decides the others again. Only one rule at a time is booked ahead: the others could be
// shared with requests that need not wait. If one denies in the end, the turns are refunded.
func (e *Engine) hold(ctx context.Context, s *scratch, v Verdict) (_ Verdict, err error) {
	since := time.Now()
	if s.admission != nil {
		since = since.Add(-s.admission.waited)
	}
	taken := make([]int64, len(s.enforced)) // of those whose turn has come
	defer func() { e.settleHold(ctx, s, taken, v.Allowed && err == nil) }()
	for !v.Allowed {
		i := s.longest(v.Decisions, time.Since(since))
		if i < 0 {
			return v, nil
		}
		c := &s.enforced[i]
		granted, err := e.wait(ctx, s.active, c.rule, func(ctx context.Context) error {
			t := &turn{ctx, since.Add(c.rule.MaxWait)}
			r, err := e.holds.limiter.WaitAll(t, c.requests(nil)...) //nolint:contextcheck // in t
			if err == nil && c.start != nil {
				*c.start = r.Start()
			}
			return err
		})
		if err != nil || !granted {
			return v, err
		}
		taken[i], c.cost = c.cost, 0 // from now on, it peeks
		if v, err = e.retake(ctx, s, taken); err != nil {
			return v, err
		}
	}
	return v, nil
}

// longest returns the charge that denies for the longest, or -1 if one that denies cannot be held.
func (s *scratch) longest(ds []headgate.Decision, waited time.Duration) int {
	longest, wait := -1, time.Duration(0)
	for i := range s.enforced {
		c := &s.enforced[i]
		d := c.strictest(ds)
		switch {
		case c.allowed(d):
		case !c.rule.holds() || d.Unchecked() || d.RetryAfter > c.rule.MaxWait-waited:
			return -1
		case d.RetryAfter > wait:
			longest, wait = i, d.RetryAfter
		}
	}
	return longest
}

// retake decides all charges of s that are not taken.
func (e *Engine) retake(ctx context.Context, s *scratch, taken []int64) (Verdict, error) {
	v, err := e.take(ctx, s.enforced, s.group(s.enforced))
	if err != nil {
		return v, err
	}
	for i := range s.enforced {
		c := &s.enforced[i]
		for j := range c.limits {
			if taken[i] > 0 {
				v.Decisions[c.first+j].RetryAfter = 0
			}
		}
	}
	return verdict(s.enforced, v.Decisions), nil
}

// settleHold ends hold. Unless the request is granted, it refunds what was taken.
func (e *Engine) settleHold(ctx context.Context, s *scratch, taken []int64, granted bool) {
	var refunds []charge
	for i, n := range taken {
		if n == 0 {
			continue
		}
		c := &s.enforced[i]
		c.cost = -n
		refunds = append(refunds, *c)
		c.cost = n
	}
	if !granted && len(refunds) > 0 {
		(&Admission{engine: e}).charge(ctx, refunds)
	}
}

// turn is the context of a caller that waits for its turn. A turn after its deadline is not booked,
// but one that comes late, because the machine is busy, is a turn.
type turn struct {
	context.Context //nolint:containedctx // it is a context

	by time.Time
}

// Deadline implements [context.Context].
func (t *turn) Deadline() (time.Time, bool) { return t.by, true }

// wait calls f, unless too many wait in r. It reports false if that is so, if the client leaves, if
// the turn would come too late, and if the server stops.
func (e *Engine) wait(
	ctx context.Context, a *active, r *rule, f func(context.Context) error,
) (come bool, err error) {
	n := a.waiting[r.Name]
	defer n.Add(-1)
	if n.Add(1) > int64(cmp.Or(r.MaxWaiting, DefaultMaxWaiting)) {
		return false, nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.holds.ending, cancel)() //nolint:contextcheck // the end of all
	err = f(ctx)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	if late || err != nil && ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// waitForPermit waits for a permit of c, and returns nil if there is none in time.
func (s *scratch) waitForPermit(
	ctx context.Context, c *charge, l *concurrency.Limiter,
) (p *concurrency.Permit, err error) {
	began, left := time.Now(), c.rule.MaxWait-s.admission.waited
	defer func() { s.admission.waited += time.Since(began) }()
	_, err = s.engine.wait(ctx, s.active, c.rule, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		p, err = l.Wait(ctx, PermitKey(c.rule.Name, c.key))
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return p, err
}
