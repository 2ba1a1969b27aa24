package headgate

import (
	"context"
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
}

// Reserve books n tokens of key, at the first moment at which they fit after all that was
// granted before, and does not wait. The caller acts when [Reservation.Delay] has
// passed, or cancels; and if the cost is known only afterwards, commits what it was.
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

// Cancel gives all of r back: the limits are as if it had never been made, whatever was
// granted after it. Who holds a turn behind r keeps that turn. It is [Reservation.Commit]
// of nothing.
func (r *Reservation) Cancel(ctx context.Context) error { return r.Commit(ctx, 0) }

// Commit settles r by what was used: what is left over is given back, as if it had
// never been reserved, and what was used beyond it is booked at the next turn, which
// those behind wait for. Only the first Commit or Cancel counts. When the time to settle is
// over nothing is given back. An error means that the store could not say, and may
// or may not have done it.
func (r *Reservation) Commit(ctx context.Context, used int64) error {
	if used < 0 {
		return invalid("used", used, "at least 0")
	}
	if r.settled.Swap(true) {
		return nil
	}
	n := r.booking.n
	switch {
	case used < n:
		return r.limiter.giveBack(ctx, r.booking, n-used)
	case used > n:
		return r.limiter.charge(ctx, r.booking, used-n)
	default:
		return nil
	}
}

// charge books n more tokens than b has, in parts that its limits grant at once.
func (l *Limiter) charge(ctx context.Context, b booking, n int64) error {
	for _, limit := range b.limits {
		one := b
		one.limits = []Limit{limit}
		for left := n; left > 0; left -= limit.Capacity() {
			if _, err := l.takeBooking(ctx, one, Request{Cost: min(left, limit.Capacity()), MaxWait: maxAhead}); err != nil {
				return err
			}
		}
	}
	return nil
}
