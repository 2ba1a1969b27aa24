package rules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// This file holds requests over a limit until their turn, in rules with MaxWait.

const (
	// DefaultMaxWaiting is how many requests of a rule wait at once if MaxWaiting is 0.
	DefaultMaxWaiting = 100

	// MaxMaxWaiting is the largest MaxWaiting.
	MaxMaxWaiting = 100_000
)

func (r *Rule) checkMaxWait() error {
	if r.MaxWait > 0 && r.Count.Denied {
		return errors.New("cannot be used with count: denied; want it in the rules that deny")
	}
	return nil
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
	for rule, w := range e.active.Load().waiting {
		w.mu.Lock()
		n := w.n
		w.mu.Unlock()
		f(rule, n)
	}
}

// waitingRooms returns a room for each rule of s that holds requests, the one of before if there is
// one.
func (s *Set) waitingRooms(before map[string]*room) map[string]*room {
	rooms := make(map[string]*room)
	for _, r := range s.rules {
		if r.holds() {
			rooms[r.Name] = cmp.Or(before[r.Name], &room{keys: map[string]int64{}})
		}
	}
	return rooms
}

// room counts the requests that wait in a rule.
type room struct {
	mu   sync.Mutex
	n    int64
	keys map[string]int64
}

// enter reports whether a request of r may wait. A key takes at most half of the room, so that one
// client does not keep the others out, unless it is the only key.
func (w *room) enter(r *rule, key string) bool {
	most := int64(cmp.Or(r.MaxWaiting, DefaultMaxWaiting))
	each := most
	varies := func(p KeyPart) bool { return p.Source != "const" }
	if r.AnyKey || slices.ContainsFunc(r.Key, varies) {
		each = (most + 1) / 2
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n >= most || w.keys[key] >= each {
		return false
	}
	w.n++
	w.keys[key]++
	return true
}

func (w *room) leave(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n--
	if w.keys[key]--; w.keys[key] == 0 {
		delete(w.keys, key)
	}
}

// hold waits for the turn of each rule that denies, the one with the longest wait first, and
// then decides the others again. Only one rule at a time is booked ahead: the others could be
// shared with requests that need not wait. If one denies in the end, the turns are refunded.
func (q *Question) hold(ctx context.Context) (err error) {
	since := time.Now().Add(-q.waited)
	taken := make([]int64, len(q.asks)) // by those whose turn has come
	defer func() { q.settleHold(ctx, taken, err == nil) }()
	for !q.granted {
		i := q.longest(time.Since(since))
		if i < 0 {
			return nil
		}
		a := &q.asks[i]
		if a.start == nil { // of the turn, for its refund
			a.start = new(time.Time)
		}
		come, err := q.wait(ctx, a, func(ctx context.Context) error {
			t := &turn{ctx, since.Add(a.rule.MaxWait)}
			l := q.engine.holds.limiter
			r, err := l.WaitAll(t, a.waiting()...) //nolint:contextcheck // in t
			if err == nil {
				*a.start = r.Start()
			}
			return err
		})
		if err != nil {
			q.fail(enforces, err)
		}
		if err != nil || !come {
			return err
		}
		taken[i], a.cost = a.cost, 0 // from now on, it peeks
		if err = q.retake(ctx, taken); err != nil {
			return err
		}
	}
	return nil
}

// waiting returns the requests of a that wait for their turn, which then has the start.
func (a *ask) waiting() []headgate.Request {
	waits := *a
	waits.start = nil
	return waits.appendRequests(nil, a.cost, Order{})
}

// longest returns the ask that denies for the longest, or -1 if one that denies cannot be held.
func (q *Question) longest(waited time.Duration) int {
	longest, wait := -1, time.Duration(0)
	for i := range q.asks {
		a := &q.asks[i]
		if a.part() != enforces || a.fits(0) {
			continue
		}
		d := a.strictest()
		if !a.rule.holds() || d.Unchecked() || d.RetryAfter > a.rule.MaxWait-waited {
			return -1
		}
		if d.RetryAfter > wait {
			longest, wait = i, d.RetryAfter
		}
	}
	return longest
}

// retake decides all asks again that are not taken.
func (q *Question) retake(ctx context.Context, taken []int64) error {
	if err := q.grant(ctx); err != nil {
		return err
	}
	for i := range q.asks {
		if taken[i] > 0 {
			for j := range q.asks[i].decisions {
				q.asks[i].decisions[j].RetryAfter = 0
			}
		}
	}
	return nil
}

// settleHold ends hold. Unless the request is granted, it refunds what was taken.
func (q *Question) settleHold(ctx context.Context, taken []int64, decided bool) {
	var refunds []ask
	for i, n := range taken {
		if n == 0 {
			continue
		}
		a := &q.asks[i]
		a.cost = -n
		refunds = append(refunds, *a)
		a.cost = n
	}
	if (!q.granted || !decided) && len(refunds) > 0 {
		q.engine.settle(ctx, refunds)
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

// wait calls f, unless too many wait in the rule of a. It reports false if that is so, if the
// request does not arrive, if the client leaves, if the turn would come too late, and if the server
// stops.
func (q *Question) wait(
	ctx context.Context, a *ask, f func(context.Context) error,
) (come bool, err error) {
	if q.arrival != nil && !q.arrival.Arrive() {
		return false, nil
	}
	q.arrival = nil
	w := q.active.waiting[a.rule.Name]
	if !w.enter(a.rule, a.key) {
		return false, nil
	}
	defer w.leave(a.key)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.engine.holds.ending, cancel)() //nolint:contextcheck // the end of all
	err = f(ctx)
	_, late := errors.AsType[*headgate.DeadlineError](err)
	if late || err != nil && ctx.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// waitForPermit waits for a permit of a, and returns nil if there is none in time.
func (q *Question) waitForPermit(
	ctx context.Context, a *ask, l *concurrency.Limiter,
) (p *concurrency.Permit, err error) {
	began, left := time.Now(), a.rule.MaxWait-q.waited
	defer func() { q.waited += time.Since(began) }()
	_, err = q.wait(ctx, a, func(ctx context.Context) (err error) {
		ctx, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		p, err = l.Wait(ctx, PermitKey(a.rule.Name, a.key))
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	return p, err
}
