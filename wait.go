package headgate

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"
)

// Wait waits until key may have one token, see [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN books n tokens of key and waits for their turn: first come, first served, across all
// who share the store. It asks the store once, which tells when the turn comes. If ctx
// ends before, the turn goes to who waits next for as many in this process, and the last
// of those turns back to the store; WaitN returns at once with the error of ctx.
//
// If the turn would come after the deadline of ctx, nothing is charged and it returns a
// [DeadlineError] at once. It returns an [InvalidError] for an n below 1, or above what
// a limit ever grants at once.
//
// The turns keep the limits. Who runs late because its machine is busy may come closer to
// those behind it than they allow; a [Gate] does not.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	b, err := l.book(ctx, key, n, 0)
	if err != nil || b.wait == 0 {
		return err
	}
	_, err = l.lines.wait(ctx, lineKey{key, n}, turnAhead{at: time.Now().Add(b.wait), ticket: b.ticket}, func(ticket uint64) {
		l.abandon(ctx, booking{key: key, limits: b.limits, n: n, ticket: ticket})
	})
	return err
}

// Waiter is l for one key, as [NewReader], [ForEach] and the like take it.
func (l *Limiter) Waiter(key string) Waiter { return keyWaiter{l, key} }

type keyWaiter struct {
	limiter *Limiter
	key     string
}

func (w keyWaiter) WaitN(ctx context.Context, n int64) error { return w.limiter.WaitN(ctx, w.key, n) }

// Most is the least that one of the limits grants at once.
func (w keyWaiter) Most() int64 {
	most := unlimited.Remaining
	for _, l := range w.limiter.limits(w.key) {
		most = min(most, l.Capacity())
	}
	return most
}

// Rate is that of the slowest of the limits.
func (w keyWaiter) Rate() (n int64, period time.Duration) {
	for _, l := range w.limiter.limits(w.key) {
		tokens := l.Capacity()
		if l.Refill() > 0 {
			tokens = l.Refill()
		}
		if n == 0 || float64(tokens)/float64(l.Period()) < float64(n)/float64(period) {
			n, period = tokens, l.Period()
		}
	}
	return n, period
}

// booking is a grant whose turn is in wait.
type booking struct {
	key    string
	limits []Limit
	n      int64
	ticket uint64
	wait   time.Duration
}

// book asks for n tokens of key, as far ahead as the deadline of ctx allows.
func (l *Limiter) book(ctx context.Context, key string, n int64, hold time.Duration) (booking, error) {
	if n < 1 {
		return booking{}, invalid("n", n, "at least 1")
	}
	if err := ctx.Err(); err != nil {
		return booking{}, err
	}
	most := maxAhead
	if deadline, ok := ctx.Deadline(); ok {
		most = min(max(time.Until(deadline), 0), maxAhead)
	}
	b := booking{key: key, limits: l.limits(key), n: n, ticket: rand.Uint64() | 1}
	d, err := l.takeBooking(ctx, b, Request{Cost: n, MaxWait: most, Ticket: b.ticket, Hold: hold})
	if err != nil {
		return booking{}, err
	}
	if d.RetryAfter == Never {
		return booking{}, invalid("n", n, "at most "+strconv.FormatInt(d.Limit.Capacity(), 10)+", which is all that "+d.Limit.Name()+" grants at once")
	}
	if d.RetryAfter > most {
		return booking{}, &DeadlineError{Limit: d.Limit, Wait: d.RetryAfter}
	}
	b.wait = d.RetryAfter
	return b, nil
}

// takeBooking makes r of all limits of b.
func (l *Limiter) takeBooking(ctx context.Context, b booking, r Request) (Decision, error) {
	if len(b.limits) == 0 {
		return unlimited, nil
	}
	r.Key, r.Limit = b.key, b.limits[0]
	if len(b.limits) == 1 {
		return l.store.Take(ctx, r)
	}
	rs, ds := make([]Request, len(b.limits)), make([]Decision, len(b.limits))
	for i, limit := range b.limits {
		rs[i] = r
		rs[i].Limit = limit
	}
	if err := l.store.TakeAll(ctx, rs, ds); err != nil {
		return Decision{}, err
	}
	return Strictest(ds), nil
}

// giveBack takes back n tokens of b.
func (l *Limiter) giveBack(ctx context.Context, b booking, n int64) error {
	_, err := l.takeBooking(ctx, b, Request{Cost: -n, Ticket: b.ticket})
	return err
}

// abandonIn is how long giving back may take that nobody waits for.
const abandonIn = 5 * time.Second

// abandon gives back all of b for a caller who has left. A store that has to be asked across a
// network is not waited for.
func (l *Limiter) abandon(ctx context.Context, b booking) {
	ctx = context.WithoutCancel(ctx)
	if l.memory != nil {
		_ = l.giveBack(ctx, b, b.n) // a booking that was granted is valid
		return
	}
	b.limits = slices.Clone(b.limits)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, abandonIn)
		defer cancel()
		_ = l.giveBack(ctx, b, b.n) // else it stays charged, as a turn that nobody used
	}()
}
