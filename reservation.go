package headgate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/waitline"
)

// Reservation is a number of tokens that are granted now or at a start time ahead. It is
// safe for use by many goroutines.
type Reservation struct {
	booking booking
	start   waitline.Start
	settled atomic.Bool
}

// Reserve takes n tokens of key at a start time, and does not wait for it. The start time is the
// first moment at which they fit after all earlier grants. Call [Reservation.Wait], or act after
// [Reservation.Delay]. If the tokens are not needed, call [Reservation.Cancel]; if the cost is
// known only afterwards, call [Reservation.Commit]. A reservation that is never settled counts as
// fully used. The errors are those of [Limiter.WaitN]: if the start would come after the deadline
// of ctx, Reserve returns a [DeadlineError] at once and charges nothing.
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) (*Reservation, error) {
	b, err := l.newBooking(ctx, key, n)
	if err != nil {
		return nil, err
	}
	r := &Reservation{booking: b}
	if len(b.limits) == 0 {
		return r, nil
	}
	c, err := b.join(ctx)
	if err != nil {
		return nil, err
	}
	r.start = c.Take()
	return r, nil
}

// ReserveNow is [Limiter.Reserve] for callers that cannot wait. If the tokens are not granted now,
// it returns a [DeadlineError] with the wait until they would be, and charges nothing.
func (l *Limiter) ReserveNow(ctx context.Context, key string, n int64) (*Reservation, error) {
	b, err := l.newBooking(ctx, key, n)
	if err != nil {
		return nil, err
	}
	r := &Reservation{booking: b}
	if len(b.limits) == 0 {
		return r, nil
	}
	if b.await(ctx, func() { r.start, err = b.book(ctx, 0) }) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Delay returns the time until the start of r, 0 if it has come.
func (r *Reservation) Delay() time.Duration { return max(time.Until(r.start.Due), 0) }

// Wait waits until the start of r. If ctx ends first, it cancels r, and returns the error of ctx at
// once.
func (r *Reservation) Wait(ctx context.Context) error {
	err := await.Sleep(ctx, r.Delay())
	if err != nil {
		settle := r.settle(ctx, 0) // now, so that the next caller gets this start time

		r.booking.Run(func() { _ = settle() }) // after an error it stays charged
	}
	return err
}

// Cancel returns all tokens of r, with one exception below. It works even if ctx has ended, and
// takes at most 5 seconds. If another caller's Cancel for the same key and n is under way, that
// Cancel also cancels r, and this one returns nil at once.
//
// If the start of r is still ahead, later callers of [Limiter.WaitN] in this process for the same
// key and n move up. If another process, or a caller with another n, has booked after r, the tokens
// stay charged and Cancel returns nil. Once the start has come, Cancel is a [Limiter.Refund]. After
// an error of the store, the tokens may or may not have been returned.
//
// Only the first Cancel or Commit counts. Later ones do nothing and return nil.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Commit(ctx, 0) }

// Commit settles r at the cost that was used. Unused tokens are refunded, see [Limiter.Refund].
// Tokens used beyond the reservation are charged whether or not they fit, see [Limiter.Charge]. It
// works even if ctx has ended, and takes at most 5 seconds. A Commit of 0 is [Reservation.Cancel].
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	if used < 0 {
		return invalid("used", used, "at least 0")
	}
	return r.settle(ctx, used)()
}

// settle returns the call of the store that is left to do.
func (r *Reservation) settle(ctx context.Context, used int64) func() error {
	b := r.booking
	if r.settled.Swap(true) || used == b.n || len(b.limits) == 0 {
		return func() error { return nil }
	}
	if used == 0 && r.Delay() > 0 {
		return b.limiter.lines.Return(b.line(), r.start, b)
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
		defer cancel()
		b.force = true
		_, err := b.take(ctx, used-b.n, 0, nil)
		return err
	}
}
