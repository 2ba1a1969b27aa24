package headgate

import (
	"context"
	"slices"
	"strconv"
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
// limit can grant almost nothing. To prevent that, give ctx a deadline: the latest start that the
// caller would use. Or use [Limiter.ReserveWait].
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) (*Reservation, error) {
	return l.booking(ctx, key, n).reserve(ctx, maxAhead)
}

// ReserveNow is [Limiter.Reserve] for callers that cannot wait. If the tokens are not granted now,
// it returns a [DeadlineError] with the wait until they would be, and charges nothing.
func (l *Limiter) ReserveNow(ctx context.Context, key string, n int64) (*Reservation, error) {
	return l.booking(ctx, key, n).reserve(ctx, 0)
}

// ReserveWait is [Limiter.WaitN] for a cost that is known only afterwards: it waits, and returns a
// reservation whose start has come.
func (l *Limiter) ReserveWait(ctx context.Context, key string, n int64) (*Reservation, error) {
	return l.booking(ctx, key, n).wait(ctx)
}

// ReserveAll is [Limiter.Reserve] for requests of any keys, limits and costs, such as a user and
// its team. All are granted with one start time, or none is charged. A Cancel that fails for one
// fails for all. It returns the errors of Reserve; an [InvalidError] for a Cost below 1, for a
// MaxWait, Start, Force or At, and for requests that [Store.TakeAll] refuses; and [ErrNoBooking]
// for Headroom. A redisstore refuses keys that may be on several servers.
func ReserveAll(ctx context.Context, store Store, rs ...Request) (*Reservation, error) {
	l, err := newLimiter(store, nil)
	if err != nil {
		return nil, err
	}
	return l.bookingAll(ctx, rs).reserve(ctx, maxAhead)
}

// reserve books b at most maxWait ahead, and before the deadline of ctx.
func (b booking) reserve(ctx context.Context, maxWait time.Duration) (*Reservation, error) {
	_, _, err := b.least()
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		maxWait = min(maxWait, max(time.Until(deadline), time.Microsecond))
	}
	var r *Reservation
	answered := make(chan struct{})
	book := func() {
		defer close(answered)
		r, err = b.book(ctx, maxWait)
	}
	if b.limiter.memory != nil {
		book()
	} else if await.Do(ctx, book) {
		go func() {
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

// book asks for a start that is at most maxWait ahead. The decision of r is also that of a denial.
func (b booking) book(ctx context.Context, maxWait time.Duration) (r *Reservation, err error) {
	maxWait = min(maxWait, maxAhead).Truncate(time.Microsecond)
	r = &Reservation{booking: b}
	rs := slices.Clone(b.requests)
	for i := range rs {
		if rs[i].MaxWait = maxWait; maxWait > 0 || rs[i].Limit.Refill() == 0 { // see Request.Refund
			rs[i].Start = &r.start
		}
	}
	d, err := b.limiter.together(context.WithoutCancel(ctx), rs, make([]Decision, len(rs)))
	r.decision, r.due = d, time.Now().Add(d.RetryAfter)
	if err != nil || d.Within(maxWait) && (d.Allowed() || !d.Unchecked()) {
		return r, err
	}
	return r, &DeadlineError{Limit: d.Limit, Wait: d.RetryAfter}
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

// Start returns the start of r by the clock of the store, see [Request.Start], or the zero time.
func (r *Reservation) Start() time.Time { return r.start }

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
// Cancel returns only tokens that the limit still counts. A bucket does not know that: there, it is
// a [Limiter.Refund]. It works even if ctx has ended, and takes at most 5 seconds. After an error
// of the store, the tokens may or may not have been returned.
//
// Only the first Cancel or Commit counts. Later ones do nothing and return nil.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Commit(ctx, 0) }

// Commit settles r at the cost that was used: one number for all of its requests, or one for each
// request of [ReserveAll], in their order. Unused tokens are returned as by Cancel. Tokens used
// beyond the reservation are charged whether or not they fit, see [Limiter.Charge]. It works even
// if ctx has ended, and takes at most 5 seconds. A Commit of 0 is [Reservation.Cancel].
func (r *Reservation) Commit(ctx context.Context, used ...int64) error {
	all, l, late := r.booking.requests, r.booking.limiter, r.Delay() == 0
	if len(used) != 1 && len(used) != len(all) {
		return wrong("used", strconv.Itoa(len(used))+" numbers", "1, or one for each request")
	}
	var rs []Request
	for i, q := range all {
		n := used[min(i, len(used)-1)]
		if n < 0 {
			return invalid("used", n, "at least 0")
		}
		q = Request{Key: q.Key, Limit: q.Limit, Cost: n - q.Cost, Start: &r.start}
		if q.Cost > 0 {
			q.Force, q.Start = true, nil
		} else if late {
			q = q.Refund(-q.Cost)
		}
		if q.Cost != 0 {
			rs = append(rs, q)
		}
	}
	if r.settled.Swap(true) || len(rs) == 0 {
		return nil
	}
	ctx, stop := await.Settling(ctx, l.memory == nil)
	defer stop()
	_, err := l.together(ctx, rs, make([]Decision, len(rs)))
	return err
}
