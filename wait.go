package headgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/waitline"
)

// Wait takes one token of key, and waits until it may be used. See [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN takes n tokens of key, and waits until they may be used: first come, first served. It calls
// the store once, which books the start time: there is no polling. If the store does not book ahead
// ([ErrNoBooking]), WaitN asks again after each RetryAfter, and promises no order.
//
// If the start time would come after the deadline of ctx, WaitN returns a [DeadlineError] at once
// and nothing is charged. It returns an [InvalidError] for an n below 1, or above what a limit ever
// grants at once. After an error of the store, the tokens may have been charged.
//
// If ctx ends first, WaitN returns the error of ctx at once. Later callers of this process for the
// same key and n move up: each gets the start time of the caller before it. The start time that is
// left over is cancelled. Its tokens stay charged if that time has already come, or if another
// process, or a caller with another n, has booked after it. The limit then grants up to n tokens
// too few, and never too many.
//
// The start times themselves never exceed the limits. But timers are a little late, so callers may
// run closer together than the limits allow. Package gate prevents that.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	b, err := l.newBooking(ctx, key, n)
	if err != nil || b.granted(ctx) {
		return err
	}
	c, err := b.join(ctx)
	switch {
	case errors.Is(err, ErrNoBooking):
		return b.poll(ctx)
	case err != nil:
		return err
	}
	return c.Wait(ctx)
}

// poll waits for a store that does not book ahead.
func (b booking) poll(ctx context.Context) error {
	for {
		var err error
		if b.await(ctx, func() { _, err = b.book(ctx, 0) }) {
			return ctx.Err()
		}
		late, denied := errors.AsType[*DeadlineError](err)
		if !denied || late.Wait > maxWait(ctx) {
			return err
		}
		if err := await.Sleep(ctx, late.Wait); err != nil {
			return err
		}
	}
}

// maxWait returns how far ahead a start time may be.
func maxWait(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(max(time.Until(deadline), time.Microsecond), maxAhead)
	}
	return maxAhead
}

// booking is a request for n tokens of key that may have to wait.
type booking struct {
	limiter *Limiter
	key     string
	limits  []Limit
	n       int64
	force   bool // charges what does not fit
}

// lineKey is what the callers of one line have in common.
type lineKey struct {
	key    string
	n      int64
	limits [4]Limit
	more   *Limit // the rest of them, if there are more than four
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

// granted reports whether there is nothing to wait for. Only a store in memory is asked.
func (b booking) granted(ctx context.Context) bool {
	if len(b.limits) == 0 || b.limiter.memory == nil {
		return len(b.limits) == 0
	}
	d, err := b.take(ctx, b.n, 0, nil)
	return err == nil && d.Allowed()
}

// join joins the line of b, and gets a start time. After an error it has left the line.
func (b booking) join(ctx context.Context) (*waitline.Caller[lineKey], error) {
	maxWait := maxWait(ctx)
	c, booked := b.limiter.lines.Join(b.line(), time.Now().Add(maxWait), b)
	if booked {
		return c, nil
	}
	var err error
	left := b.await(ctx, func() {
		var start waitline.Start
		defer func() { c.Answer(start) }()
		start, err = b.book(ctx, maxWait)
	})
	if left && c.Leave() {
		return nil, ctx.Err()
	}
	return c, err
}

// await calls f, and reports true if ctx has ended before f returns. In memory f takes no
// time; else it goes on in a goroutine.
func (b booking) await(ctx context.Context, f func()) (left bool) {
	if b.limiter.memory != nil {
		f()
		return false
	}
	return await.Do(ctx, f)
}

// book asks the store for a start time that is at most maxWait ahead.
func (b booking) book(ctx context.Context, maxWait time.Duration) (waitline.Start, error) {
	start := waitline.Start{Times: make([]time.Time, len(b.limits))}
	d, err := b.take(context.WithoutCancel(ctx), b.n, maxWait, start.Times)
	switch {
	case err != nil:
		return waitline.Start{}, err
	case d.RetryAfter == Never && b.n > d.Limit.Capacity():
		want := fmt.Sprintf("at most %d, the burst of %s", d.Limit.Capacity(), d.Limit.Name())
		return waitline.Start{}, invalid("n", b.n, want)
	case d.RetryAfter > maxWait:
		return waitline.Start{}, &DeadlineError{Limit: d.Limit, Wait: d.RetryAfter}
	}
	start.Due = time.Now().Add(d.RetryAfter)
	return start, nil
}

// take makes one request of all limits of b. starts are nil, or one for each.
func (b booking) take(
	ctx context.Context, cost int64, maxWait time.Duration, starts []time.Time,
) (Decision, error) {
	if len(b.limits) == 1 {
		return b.limiter.store.Take(ctx, b.request(0, cost, maxWait, starts))
	}
	rs, ds := make([]Request, len(b.limits)), make([]Decision, len(b.limits))
	for i := range rs {
		rs[i] = b.request(i, cost, maxWait, starts)
	}
	if err := b.limiter.store.TakeAll(ctx, rs, ds); err != nil {
		return Decision{}, err
	}
	return Strictest(ds), nil
}

func (b booking) request(i int, cost int64, maxWait time.Duration, starts []time.Time) Request {
	r := Request{Key: b.key, Limit: b.limits[i], Cost: cost, MaxWait: maxWait, Force: b.force}
	if starts != nil {
		r.Start = &starts[i]
	}
	return r
}

func (b booking) line() lineKey {
	k := lineKey{key: b.key, n: b.n}
	if copy(k.limits[:], b.limits) < len(b.limits) {
		k.more = &b.limits[len(k.limits)]
	}
	return k
}

// cancelWithin is how long a cancel or a commit may take, after its context has ended.
const cancelWithin = 5 * time.Second

// Cancel implements [waitline.Store].
func (b booking) Cancel(s waitline.Start) (done bool, err error) {
	if s.Times[0].IsZero() { // the store does not name start times
		return true, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), cancelWithin)
	defer cancel()
	d, err := b.take(ctx, -b.n, 0, s.Times)
	return d.RetryAfter != Never, err
}

// Run implements [waitline.Store].
func (b booking) Run(f func()) {
	if b.limiter.memory != nil {
		f()
		return
	}
	go f()
}
