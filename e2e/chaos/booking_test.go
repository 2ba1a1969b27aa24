package chaos

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// ahead bounds how far ahead start times lie: no caller waits longer than its deadline.
const ahead = deadline

// never is later than all that happens.
const never = time.Duration(math.MaxInt64)

// wait waits for tokens. One caller in four leaves early.
func (n *tally) wait(ctx context.Context, random *rand.Rand, l *headgate.Limiter, c call) {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	if random.IntN(4) == 0 {
		defer time.AfterFunc(time.Duration(random.Int64N(int64(deadline/2))), leave).Stop()
	}
	c.start = n.now()
	c.err = l.WaitN(ctx, c.key, c.cost)
	c.end = n.now()
	n.recordBooked(c)
}

// reserve takes tokens at a start time. It cancels some reservations at once, and waits for the
// others and commits less, the same or more than was reserved.
func (n *tally) reserve(ctx context.Context, random *rand.Rand, l *headgate.Limiter, c call) {
	c.start = n.now()
	r, err := l.Reserve(ctx, c.key, c.cost)
	if err == nil && random.IntN(3) == 0 {
		n.commit(ctx, c, r, 0)
		return
	}
	if err == nil {
		err = r.Wait(ctx)
	}
	c.end, c.err = n.now(), err
	n.recordBooked(c)
	if err == nil {
		n.commit(ctx, c, r, random.Int64N(c.cost+2))
	}
}

// commit settles a reservation. After an error the refund may be done at any time.
func (n *tally) commit(ctx context.Context, c call, r *headgate.Reservation, used int64) {
	g := grant{end: n.now(), start: never, n: used - c.cost}
	err := r.Commit(ctx, used)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if err != nil {
		n.failBooked(err, n.now())
	} else {
		g.start = n.now()
	}
	if g.n < 0 {
		a := n.account(c.key, loadOf(c.key).limits[0], c.start)
		a.grants = append(a.grants, g)
	}
}

// recordBooked counts a call for tokens that start ahead. The start time lies between the
// beginning of the call and its return, because the caller waits until then.
func (n *tally) recordBooked(c call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	a := n.account(c.key, loadOf(c.key).limits[0], c.start)
	_, denied := errors.AsType[*headgate.DeadlineError](c.err)
	switch {
	case c.err == nil:
		a.grants = append(a.grants, grant{c.start, c.end, c.cost})
	case !denied && !errors.Is(c.err, context.Canceled):
		n.failBooked(c.err, c.end)
		return
	}
	if n.stack.bare && !errors.Is(c.err, context.Canceled) {
		n.answered[c.key] = max(n.answered[c.key], c.start)
	}
}

// failBooked counts an error. A fallback that fails closed answers a call for tokens that start
// ahead with an error of its own.
func (n *tally) failBooked(err error, at time.Duration) {
	if !n.stack.bare && errors.Is(err, fallback.ErrDegraded) {
		n.instead++
		n.trouble = append(n.trouble, at)
		return
	}
	n.fail(err, at)
}

// bookedClaims are what is to be held of tokens that start ahead. With a fallback, callers do not
// see who granted them: the limit and the shares hold together.
func (n *tally) bookedClaims(a *account, s *scene, m moments) []claim {
	end := m.ended + patience
	limit := func(d time.Duration) int64 { return most(a.limit, d) }
	share, bounded := n.stack.own(a.limit)
	switch {
	case !bounded:
		return nil
	case share(0) > 0:
		both := func(d time.Duration) int64 { return limit(d) + instances*share(d) }
		return []claim{{"by the store and by instances", within(a.grants, 0, end), both, n.room(a, s)}}
	}
	return []claim{
		{"before the fault", within(a.grants, 0, m.injected), limit, 0},
		{"by the store", within(a.grants, 0, end), limit, n.room(a, s)},
		{"after the fault", within(a.grants, m.answering+ahead, end), limit, 0},
	}
}
