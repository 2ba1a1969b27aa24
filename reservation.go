package headgate

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/internal/await"
)

// Reservation is a number of tokens that are granted now or at a start time ahead. It is safe for
// use by many goroutines.
type Reservation struct {
	booking  booking
	decision Decision
	due      time.Time // the start, by the clock of this process
	start    time.Time // the same by that of the store, or zero
	settled  atomic.Bool
}

// Reserve takes n tokens of key at a start time, and does not wait for it. The start time is the
// first moment at which they fit after all earlier grants. Call [Reservation.Wait], or act after
// [Reservation.Delay]. If the tokens are not needed, call [Reservation.Cancel]; if the cost is
// known only afterwards, call [Reservation.Commit]. A reservation that is never settled counts as
// fully used. The errors are those of [Limiter.WaitN]: if the start would come after the deadline
// of ctx, Reserve returns a [DeadlineError] at once and charges nothing.
//
// Only the last start time of a key can be cancelled. So if many callers reserve and give up, the
// limit can grant almost nothing. To prevent that, give ctx a deadline as long as the patience of
// the caller, or use [Limiter.ReserveWait].
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) (*Reservation, error) {
	maxWait := maxAhead
	if deadline, ok := ctx.Deadline(); ok {
		maxWait = max(time.Until(deadline), time.Microsecond)
	}
	return l.reserve(ctx, key, n, maxWait)
}

// ReserveNow is [Limiter.Reserve] for callers that cannot wait. If the tokens are not granted now,
// it returns a [DeadlineError] with the wait until they would be, and charges nothing.
func (l *Limiter) ReserveNow(ctx context.Context, key string, n int64) (*Reservation, error) {
	return l.reserve(ctx, key, n, 0)
}

// ReserveWait is [Limiter.WaitN] for a cost that is known only afterwards: it waits, and returns a
// reservation whose start has come.
func (l *Limiter) ReserveWait(ctx context.Context, key string, n int64) (*Reservation, error) {
	b, err := l.newBooking(ctx, key, n)
	r := &Reservation{booking: b}
	if err == nil {
		r.decision, r.start, err = b.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (l *Limiter) reserve(
	ctx context.Context, key string, n int64, maxWait time.Duration,
) (*Reservation, error) {
	b, err := l.newBooking(ctx, key, n)
	if err != nil {
		return nil, err
	}
	r := &Reservation{booking: b, decision: unlimited}
	if len(b.limits) == 0 {
		return r, nil
	}
	answered := make(chan struct{})
	book := func() {
		defer close(answered)
		r.decision, r.start, err = b.book(ctx, maxWait)
		r.due = time.Now().Add(r.decision.RetryAfter)
	}
	if b.limiter.memory != nil {
		book()
	} else if await.Do(ctx, book) {
		go func() { //nolint:contextcheck // ctx has ended
			if <-answered; err == nil && r.Delay() > 0 {
				_ = r.Cancel(ctx) // after an error it stays charged
			}
		}()
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Delay returns the time until the start of r, 0 if it has come.
func (r *Reservation) Delay() time.Duration { return max(time.Until(r.due), 0) }

// Decision returns the decision with which the tokens of r were granted, for example to set header
// fields. With several limits, it is the [Strictest]. Its RetryAfter is the [Reservation.Delay].
func (r *Reservation) Decision() Decision {
	d := r.decision
	d.RetryAfter = r.Delay()
	return d
}

// Wait waits until the start of r. If ctx ends first, it cancels r, and returns the error of ctx at
// once.
func (r *Reservation) Wait(ctx context.Context) error {
	err := await.Sleep(ctx, r.Delay())
	if err != nil {
		await.Do(ctx, func() { _ = r.Cancel(ctx) }) // after an error it stays charged
	}
	return err
}

// Cancel returns all tokens of r, with one exception: if a later start time was booked before the
// start of r has come, the tokens stay charged, and Cancel returns nil. Once the start has come,
// Cancel returns what r still holds: nothing of a window that has ended. A bucket does not know
// that: there, it is a [Limiter.Refund]. It works even if ctx has ended, and takes at most 5
// seconds. After an error of the store, the tokens may or may not have been returned.
//
// Only the first Cancel or Commit counts. Later ones do nothing and return nil.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Commit(ctx, 0) }

// Commit settles r at the cost that was used. Unused tokens are returned as by Cancel. Tokens used
// beyond the reservation are charged whether or not they fit, see [Limiter.Charge]. It works even
// if ctx has ended, and takes at most 5 seconds. A Commit of 0 is [Reservation.Cancel].
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	b := r.booking
	switch {
	case used < 0:
		return invalid("used", used, "at least 0")
	case r.settled.Swap(true) || used == b.n || len(b.limits) == 0:
		return nil
	}
	ctx, stop := await.Settling(ctx, b.limiter.memory == nil)
	defer stop()
	start := &r.start
	if b.late = r.Delay() == 0; used > b.n {
		b.late, b.force, start = false, true, nil
	}
	_, err := b.take(ctx, used-b.n, 0, start)
	return err
}
