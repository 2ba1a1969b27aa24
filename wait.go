package headgate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/waitline"
)

// Wait takes one token of key, and waits until it may be used. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n tokens of key, and waits until they may be used. In this process, the callers for
// the same key and limits wait in a line: first come, first served; while tokens are left, a
// smaller n can pass first. Only the first ones ask the store, shortly before their start time.
// Between processes no order is promised, but after 16 denials a caller books its start time.
//
// If the tokens cannot be used before the deadline of ctx, WaitN returns a [DeadlineError] as soon
// as that is certain, and charges nothing. It returns an [InvalidError] for an n below 1, or above
// what a limit ever grants at once. After another error, the tokens may be charged.
//
// If ctx ends first, WaitN returns the error of ctx at once. A start time that was granted already
// goes to the next caller with the same n, or is cancelled. If it has come, its tokens are lost.
//
// The start times themselves never exceed the limits. But timers are a little late, so callers may
// run closer together than the limits allow. Package gate prevents that.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	if l.memory != nil && !l.lines.Any() && ctx.Err() == nil { // allocates nothing
		if d, err := l.AllowN(ctx, key, n); err == nil && d.Allowed() {
			return nil
		}
	}
	_, err := l.booking(ctx, key, n).wait(ctx)
	return err
}

// WaitAll is [Limiter.ReserveWait] for requests of any keys, limits and costs, whatever the limits
// of l: it waits until all are granted together. Callers wait in one line if their requests differ
// only in cost, each by the same number. With Headroom, nothing is booked ahead. The errors are
// those of WaitN, and of [ReserveAll] for its requests.
func (l *Limiter) WaitAll(ctx context.Context, rs ...Request) (*Reservation, error) {
	return l.bookingAll(ctx, rs).wait(ctx)
}

// booking is some requests that are granted together, and may have to wait.
type booking struct {
	limiter  *Limiter // its limits do not matter
	requests []Request
	fixed    *[]Limit // the limits of l, if these are they
	err      error    // why they cannot be made
}

// booking is for n tokens of key.
func (l *Limiter) booking(ctx context.Context, key string, n int64) booking {
	b := booking{limiter: l, fixed: l.fixed.Load(), err: ctx.Err()}
	if n < 1 {
		b.err = invalid("n", n, "at least 1")
	}
	if b.err == nil {
		var limits []Limit
		limits, b.err = l.Limits(ctx, key)
		b.requests = requests(key, n, limits)
	}
	return b
}

func requests(key string, n int64, limits []Limit) (rs []Request) {
	for _, limit := range limits {
		rs = append(rs, Request{Key: key, Limit: limit, Cost: n})
	}
	return rs
}

func (l *Limiter) bookingAll(ctx context.Context, rs []Request) booking {
	if err := ValidateAll(rs, make([]Decision, len(rs))); err != nil {
		return booking{err: err}
	}
	for i, r := range rs {
		plain := Request{Key: r.Key, Limit: r.Limit, Cost: max(r.Cost, 1), Headroom: r.Headroom}
		if r != plain {
			return booking{err: wrong("request "+strconv.Itoa(i), "not one that waits",
				"a Cost of at least 1, and no MaxWait, Start, Force or At")}
		}
	}
	return booking{limiter: l, requests: slices.Clone(rs), err: ctx.Err()}
}

// least returns the least cost and the least capacity of b, or an error if one of its requests is
// never granted.
func (b booking) least() (cost, capacity int64, err error) {
	cost, capacity = math.MaxInt64, math.MaxInt64
	for _, r := range b.requests {
		most := r.Limit.Capacity()
		if cost, capacity = min(cost, r.Cost), min(capacity, most); r.Cost > most {
			want := fmt.Sprintf("at most %d, the burst of %s", most, r.Limit.Name())
			return 0, 0, invalid("cost", r.Cost, want)
		}
	}
	return cost, capacity, b.err
}

// wait waits in the line of b. If nobody does, a store in memory is asked at once.
func (b booking) wait(ctx context.Context) (*Reservation, error) {
	n, most, err := b.least()
	if err != nil {
		return nil, err
	}
	lines, k := &b.limiter.lines, line(b.requests, n)
	if b.fixed != nil {
		k = b.requests[0].Key // its limits may change
	}
	if len(b.requests) == 0 || b.limiter.memory != nil && !lines.Has(k) {
		if r, err := b.book(ctx, 0); err == nil {
			return r, nil
		}
	}
	by, _ := ctx.Deadline()
	start, err := lines.Wait(ctx, k, n, most, by, &asker{b, ctx})
	r, _ := start.Grant.(*Reservation)
	return r, err
}

// line is what the callers of one line have in common: rs, with what each costs above n.
func line(rs []Request, n int64) (k any) {
	for _, r := range rs {
		r.Cost -= n
		k = [2]any{k, r}
	}
	return k
}

// asker is the [waitline.Store] of a caller of a line.
type asker struct {
	booking

	ctx context.Context //nolint:containedctx // of the caller
}

// Ask implements [waitline.Store].
func (a *asker) Ask(maxWait time.Duration) (answer waitline.Answer, err error) {
	if fixed := a.limiter.fixed.Load(); a.fixed != nil && a.fixed != fixed { // by SetLimits
		a.requests, a.fixed = requests(a.requests[0].Key, a.requests[0].Cost, *fixed), fixed
	}
	r, err := a.book(a.ctx, maxWait)
	if answer.Polls = errors.Is(err, ErrNoBooking); answer.Polls {
		r, err = a.book(a.ctx, 0)
	}
	d := r.decision
	answer.Granted, answer.Start = err == nil, waitline.Start{At: r.start, Grant: r}
	answer.Wait, answer.Left = d.RetryAfter, d.Remaining
	if len(a.requests) == 1 || d.RetryAfter > 0 {
		answer.Limit = d.Limit.rule
	}
	if late, ok := errors.AsType[*DeadlineError](err); ok && late.Wait != Never {
		answer.Wait, answer.Limit = late.Wait, late.Limit.rule
		answer.Paused = d.Limit != late.Limit || d.Unchecked() // it is no wait for tokens
		return answer, nil
	}
	answer.Invalid = err != nil && !Unavailable(a.ctx, err)
	return answer, err
}

// Cancel implements [waitline.Store].
func (a *asker) Cancel(s waitline.Start) error {
	return s.Grant.(*Reservation).Cancel(context.Background()) //nolint:forcetypeassert // by Ask
}

// Inline implements [waitline.Store].
func (a *asker) Inline() bool { return a.limiter.memory != nil }

// Late implements [waitline.Store].
func (a *asker) Late(l *algorithm.Rule, wait time.Duration) error {
	return &DeadlineError{Limit: Limit{l}, Wait: wait}
}
