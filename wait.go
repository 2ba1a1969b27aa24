package headgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"
)

// Wait waits until key may have one token, see [Limiter.WaitN].
func (l *Limiter) Wait(ctx context.Context, key string) error { return l.WaitN(ctx, key, 1) }

// WaitN books n tokens of key and waits for their turn: first come, first served, across all
// who share the store. It asks the store once, which tells when the turn comes. If ctx
// ends before, WaitN returns at once with the error of ctx, the limits are as if it had
// never asked (but for what a store across a network had granted without a wait), and those who wait behind it in this process move up; those in other
// processes keep the times that they were told. Of more than 1024 who wait for one key, the
// first can no longer be taken back: their turns pass unused.
//
// If the turn would come after the deadline of ctx, nothing is charged and it returns a
// [DeadlineError] at once. It returns an [InvalidError] for an n below 1, or above what
// a limit ever grants at once.
//
// The turns keep the limits. Who runs late because its machine is busy may come closer to
// those behind it than they allow; a gate (package gate) does not.
func (l *Limiter) WaitN(ctx context.Context, key string, n int64) error {
	b, err := l.book(ctx, key, n, 0)
	if err != nil || b.wait == 0 {
		return err
	}
	t := turnAhead{at: time.Now().Add(b.wait), ticket: b.ticket}
	_, err = l.lines.wait(ctx, lineKeyOf(key, b.limits, 0), n, t, limiterDesk{l, key, b.limits})
	return err
}

// Waiter returns l for one key, as package gate takes it.
func (l *Limiter) Waiter(key string) *KeyWaiter { return &KeyWaiter{l, key} }

// KeyWaiter is a [Limiter] for one key. See [Limiter.Waiter].
type KeyWaiter struct {
	limiter *Limiter
	key     string
}

// WaitN is [Limiter.WaitN] for the key.
func (w *KeyWaiter) WaitN(ctx context.Context, n int64) error { return w.limiter.WaitN(ctx, w.key, n) }

// Burst returns the smallest capacity of the limits.
func (w *KeyWaiter) Burst() int64 {
	most := unlimited.Remaining
	for _, l := range w.limiter.limits(w.key) {
		most = min(most, l.Capacity())
	}
	return most
}

// Rate returns that of the slowest of the limits.
func (w *KeyWaiter) Rate() (n int64, period time.Duration) {
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
	hold   time.Duration
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
	b := booking{key: key, limits: l.limits(key), n: n, ticket: rand.Uint64() | 1, hold: hold}
	d, err := l.ask(ctx, b, Request{Cost: n, MaxWait: most, Ticket: b.ticket, Hold: hold})
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

// ask books b by r. A store that has to be asked across a network may answer when the caller
// has left: what it granted then is given back.
func (l *Limiter) ask(ctx context.Context, b booking, r Request) (Decision, error) {
	if l.memory != nil {
		return l.takeBooking(ctx, b, r)
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			a.panicked = recover()
			answers <- a
		}()
		a.d, a.err = l.takeBooking(context.WithoutCancel(ctx), b, r)
	}()
	desk := limiterDesk{l, b.key, b.limits}
	select {
	case a := <-answers:
		switch {
		case a.panicked != nil:
			panic(a.panicked) // for the caller's goroutine to deal with
		case a.err != nil && !invalidInput(a.err):
			desk.run(func() { desk.giveBack(b.ticket, b.n) }) //nolint:contextcheck // it may have been granted, whatever ctx says
		}
		return a.d, a.err
	case <-ctx.Done():
		desk.run(func() { //nolint:contextcheck // ctx has ended
			if a := <-answers; a.err != nil || a.d.Within(r.MaxWait) {
				desk.giveBack(b.ticket, b.n)
			}
		})
		return Decision{}, ctx.Err()
	}
}

// invalidInput says whether err was told before anything was decided.
func invalidInput(err error) bool {
	_, is := errors.AsType[*InvalidError](err)
	return is
}

// answer is what a store said, or why it did not.
type answer struct {
	d        Decision
	err      error
	panicked any
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

// giveBackIn is how long giving back may take, whatever the context says.
const giveBackIn = 5 * time.Second

// limiterDesk is the store of a limiter for one key.
type limiterDesk struct {
	limiter *Limiter
	key     string
	limits  []Limit
}

// run waits for a store in memory, and for no other: the caller has left.
func (d limiterDesk) run(do func()) {
	if d.limiter.memory != nil {
		do()
		return
	}
	go do()
}

func (d limiterDesk) giveBack(ticket uint64, n int64) {
	_, _ = d.take(Request{Cost: -n, Ticket: ticket}) // else the turn passes unused
}

func (d limiterDesk) look(ticket uint64) (wait time.Duration, ok bool) {
	a, err := d.take(Request{Ticket: ticket})
	return a.RetryAfter, err == nil && a.RetryAfter != Never
}

func (d limiterDesk) take(r Request) (Decision, error) {
	ctx, cancel := context.WithTimeout(context.Background(), giveBackIn)
	defer cancel()
	return d.limiter.takeBooking(ctx, booking{key: d.key, limits: d.limits}, r)
}
