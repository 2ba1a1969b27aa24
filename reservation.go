package headgate

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
	"time"
)

// DefaultHold is for how long after its turn [Limiter.Reserve] lets a reservation be
// settled.
const DefaultHold = time.Minute

// Reservation is some tokens that are granted, at once or at a turn ahead. It is safe for
// use by many goroutines.
type Reservation struct {
	limiter *Limiter
	booking booking
	turn    time.Time
	settled atomic.Bool
	failed  atomic.Pointer[error] // of a Commit that may or may not have been done
}

// Reserve books n tokens of key, at the first moment at which they fit after all that was
// granted before, and does not wait. The caller acts when [Reservation.Delay] has
// passed, or rather waits by [Reservation.Wait], whose turn may come earlier if others cancel;
// or cancels; and if the cost is known only afterwards, commits what it was.
// Who never comes back has used all of it. The errors are those of [Limiter.WaitN].
//
// While a reservation may be settled, the store remembers what is granted to the key one by
// one, see [Request]: hold no longer than is needed, by [Limiter.ReserveFor].
func (l *Limiter) Reserve(ctx context.Context, key string, n int64) (*Reservation, error) {
	return l.ReserveFor(ctx, key, n, DefaultHold)
}

// ReserveFor is [Limiter.Reserve] with a time for which the reservation may be settled
// after its turn; 0: until its turn has come. After that it counts as it was made.
func (l *Limiter) ReserveFor(ctx context.Context, key string, n int64, hold time.Duration) (*Reservation, error) {
	b, err := l.book(ctx, key, n, hold)
	if err != nil {
		return nil, err
	}
	return &Reservation{limiter: l, booking: b, turn: time.Now().Add(b.wait)}, nil
}

// Delay is the time until the turn of r, 0 if it has come.
func (r *Reservation) Delay() time.Duration { return max(time.Until(r.turn), 0) }

// Wait waits for the turn of r, in the line of those in this process who reserve as many tokens
// of the key for as long. If one before it leaves, its turn comes earlier than Delay told. If
// ctx ends before, r is cancelled, and Wait returns at once with the error of ctx. Call it once,
// before r is settled.
func (r *Reservation) Wait(ctx context.Context) error {
	if r.Delay() == 0 {
		return ctx.Err()
	}
	l, b := r.limiter, &r.booking
	t := turnAhead{at: r.turn, ticket: b.ticket}
	t, err := l.lines.wait(ctx, lineKeyOf(b.key, b.limits, b.hold), b.n, t, limiterDesk{l, b.key, b.limits})
	if err != nil {
		r.settled.Store(true)
		return err
	}
	r.turn, b.ticket = t.at, t.ticket
	return nil
}

// Cancel gives all of r back: the state is exactly as if r had never been made, whatever was
// granted after it. Only what others were granted together under a limit that r does not have stays
// no earlier than it is, see [Request]. Who holds a turn behind r in another process, or as a
// reservation, keeps that turn, while the state counts it where it would have been without r:
// so up to what was given back may act together with others, and under several limits up to
// all that waited behind r. Use a [Gate] where the moments of acting count. It is [Reservation.Commit] of nothing.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Commit(ctx, 0) }

// Commit settles r by what was used: what is left over is given back, as if it had
// never been reserved, and what was used beyond it is booked at the next turns, which
// those behind wait for. It is done even if ctx has ended, within 5 seconds.
//
// Only the first Commit or Cancel counts; what comes later does nothing and returns nil, or the
// error of a Commit of a part that failed, which cannot be tried again because it may have been
// done. It returns [ErrTooLate], and gives nothing back under any limit, if r counts for good already under
// one of them: its time to settle is over, the limit's numbers have changed, or 1024 grants of that
// key came after it. Another error means that the store could not say: all of it may or may not
// have been given back, and a Cancel may be tried again. What was used beyond r is booked under one
// limit after the other; an error says how much of it is not.
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	b := r.booking
	if most := b.most(); used < 0 || used > most {
		return invalid("used", used, "from 0 to "+strconv.FormatInt(most, 10))
	}
	if r.settled.Swap(true) {
		if failed := r.failed.Load(); failed != nil {
			return *failed
		}
		return nil
	}
	if used == b.n || len(b.limits) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackIn)
	defer cancel()
	if used > b.n {
		return r.limiter.charge(ctx, b, used-b.n)
	}
	d, err := r.limiter.takeBooking(ctx, b, Request{Cost: used - b.n, Ticket: b.ticket})
	switch {
	case err != nil && used == 0:
		r.settled.Store(false)
		return err
	case err != nil:
		r.failed.Store(&err)
		return err
	case d.RetryAfter == Never:
		return ErrTooLate
	}
	r.limiter.moveUp(b)
	return nil
}

// moveUp lets those who wait for the key of b in this process have the turns that it left.
func (l *Limiter) moveUp(b booking) {
	desk := limiterDesk{l, b.key, b.limits}
	desk.run(func() {
		for _, hold := range []time.Duration{0, b.hold} {
			l.lines.moveUp(lineKeyOf(b.key, b.limits, hold), desk)
		}
	})
}

// mostParts bounds how often Commit asks for what was used beyond a reservation.
const mostParts = 100

// most is the most that can be committed.
func (b *booking) most() int64 {
	most := int64(math.MaxInt64)
	for _, l := range b.limits {
		if beyond := l.Capacity(); beyond < (most-b.n)/mostParts {
			most = b.n + mostParts*beyond
		}
	}
	return most
}

// charge books n more tokens than b has, in parts that its limits grant at once. Each limit
// has them at turns of its own: they are used already, and one limit is not to wait for another.
func (l *Limiter) charge(ctx context.Context, b booking, n int64) error {
	for i, limit := range b.limits {
		left, err := l.chargeOne(ctx, booking{key: b.key, limits: b.limits[i : i+1]}, n)
		if err != nil {
			return fmt.Errorf("headgate: %d of %d tokens beyond the reservation are not booked by %s, nor any by the %d limits after it: %w",
				left, n, limit.Name(), len(b.limits)-i-1, err)
		}
	}
	return nil
}

// chargeOne does that for one limit, and says how many are left if it cannot.
func (l *Limiter) chargeOne(ctx context.Context, b booking, n int64) (left int64, err error) {
	limit := b.limits[0]
	for left = n; left > 0; left -= limit.Capacity() {
		d, err := l.takeBooking(ctx, b, Request{Cost: min(left, limit.Capacity()), MaxWait: maxAhead})
		if err != nil {
			return left, err
		}
		if !d.Within(maxAhead) {
			return left, invalid("used", n, "no more beyond the reservation than "+limit.Name()+" grants in 285 years")
		}
	}
	return 0, nil
}
