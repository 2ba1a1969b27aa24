package headgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/waitline"
)

// Wait takes one token of key, and waits until it may be used. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n tokens of key, and waits until they may be used. In this process, the callers for
// the same key and limits wait in a line: first come, first served, whatever their n. Only the
// first ones ask the store, shortly before their start time. Between processes no order is
// promised, but a caller that was denied 16 times books its start time, however far ahead.
//
// If the tokens cannot be used before the deadline of ctx, WaitN returns a [DeadlineError] as soon
// as that is certain, and nothing is charged. It returns an [InvalidError] for an n below 1, or
// above what a limit ever grants at once. After an error of the store, the tokens may have been
// charged.
//
// If ctx ends first, WaitN returns the error of ctx at once. A start time that was granted already
// goes to the next caller with the same n, or is cancelled. If it has come, its tokens are lost.
//
// The start times themselves never exceed the limits. But timers are a little late, so callers may
// run closer together than the limits allow. Package gate prevents that.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	b, err := l.newBooking(ctx, key, n)
	if err != nil {
		return err
	}
	if l.memory != nil && len(b.limits) == 1 && !l.lines.Any() { // without an allocation
		if d, err := l.memory.take(key, b.limits[0], n); err == nil && d.Allowed() {
			return nil
		}
	}
	_, _, err = b.wait(ctx)
	return err
}

// booking is a request for n tokens of key that may have to wait.
type booking struct {
	limiter *Limiter
	key     string
	limits  []Limit
	n       int64
	force   bool // charges what does not fit
	late    bool // refunds after the start
}

// lineKey is what the callers of one line have in common.
type lineKey struct {
	key    string
	limits [4]Limit
	more   string // the IDs of the rest
}

func (l *Limiter) newBooking(ctx context.Context, key string, n int64) (booking, error) {
	if n < 1 {
		return booking{}, invalid("n", n, "at least 1")
	}
	if err := ctx.Err(); err != nil {
		return booking{}, err
	}
	limits, err := l.Limits(ctx, key)
	return booking{limiter: l, key: key, limits: limits, n: n}, err
}

// possible returns an error if l never grants b.
func (b booking) possible(limits ...Limit) error {
	for _, l := range limits {
		if b.n > l.Capacity() {
			want := fmt.Sprintf("at most %d, the burst of %s", l.Capacity(), l.Name())
			return invalid("n", b.n, want)
		}
	}
	return nil
}

// wait waits in the line of b. If nobody does, a store in memory is asked at once.
func (b booking) wait(ctx context.Context) (d Decision, start time.Time, err error) {
	if len(b.limits) == 0 {
		return unlimited, start, nil
	}
	if err = b.possible(b.limits...); err != nil {
		return d, start, err
	}
	lines := &b.limiter.lines
	k := lineKey{key: b.key}
	for _, l := range b.limits[copy(k.limits[:], b.limits):] {
		k.more += l.ID() + "\n"
	}
	if b.limiter.memory != nil && !lines.Has(k) {
		if d, start, err = b.book(ctx, 0); err == nil {
			return d, start, nil
		}
	}
	most := b.limits[0].Capacity()
	for _, l := range b.limits[1:] {
		most = min(most, l.Capacity())
	}
	by, _ := ctx.Deadline()
	at, err := lines.Wait(ctx, k, b.n, most, by, &asker{b, ctx})
	d, _ = at.Grant.(Decision)
	return d, at.At, err
}

// take makes one request of all limits of b, which have one start, or nil.
func (b booking) take(
	ctx context.Context, cost int64, maxWait time.Duration, start *time.Time,
) (Decision, error) {
	if len(b.limits) == 1 {
		return b.limiter.store.Take(ctx, b.request(b.limits[0], cost, maxWait, start))
	}
	rs, ds := make([]Request, len(b.limits)), make([]Decision, len(b.limits))
	for i, l := range b.limits {
		rs[i] = b.request(l, cost, maxWait, start)
	}
	if err := b.limiter.store.TakeAll(ctx, rs, ds); err != nil {
		return Decision{}, err
	}
	return Strictest(ds), nil
}

func (b booking) request(l Limit, cost int64, maxWait time.Duration, start *time.Time) Request {
	r := Request{
		Key: b.key, Limit: l, Cost: cost, MaxWait: maxWait, Force: b.force, Start: start,
	}
	if b.late {
		return r.Refund(-cost)
	}
	return r
}

// book asks for a start that is at most maxWait ahead. start is set if it was granted.
func (b booking) book(
	ctx context.Context, maxWait time.Duration,
) (d Decision, start time.Time, err error) {
	if maxWait = min(maxWait, maxAhead); maxWait < time.Microsecond {
		maxWait = 0
	}
	d, err = b.take(context.WithoutCancel(ctx), b.n, maxWait, &start)
	if err == nil && d.RetryAfter == Never {
		err = b.possible(d.Limit)
	}
	if err != nil || d.Within(maxWait) && (d.Allowed() || !d.Unchecked()) {
		return d, start, err
	}
	return d, start, &DeadlineError{Limit: d.Limit, Wait: d.RetryAfter}
}

// Cancel gives back a start that is ahead, if the store names it and it is the last.
func (b booking) Cancel(start waitline.Start) error {
	ctx, stop := await.Settling(context.Background(), b.limiter.memory == nil)
	defer stop()
	_, err := b.take(ctx, -b.n, 0, &start.At)
	return err
}

// asker is the [waitline.Store] of a caller of a line.
type asker struct {
	booking

	ctx context.Context //nolint:containedctx // of the caller
}

// Ask implements [waitline.Store].
func (a *asker) Ask(maxWait time.Duration) (answer waitline.Answer, err error) {
	d, start, err := a.book(a.ctx, maxWait)
	if answer.Polls = errors.Is(err, ErrNoBooking); answer.Polls {
		d, start, err = a.book(a.ctx, 0)
	}
	answer.Granted, answer.Start = err == nil, waitline.Start{At: start, Grant: d}
	answer.Wait, answer.Left = d.RetryAfter, d.Remaining
	if len(a.limits) == 1 || d.RetryAfter > 0 {
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

// Inline implements [waitline.Store].
func (a *asker) Inline() bool { return a.limiter.memory != nil }

// Late implements [waitline.Store].
func (a *asker) Late(l *algorithm.Rule, wait time.Duration) error {
	return &DeadlineError{Limit: Limit{l}, Wait: wait}
}
