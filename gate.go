package headgate

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// Gate lets at most n callers pass in any window of the length of a period, wherever
// the window begins, and makes the others wait: first come, first served, each
// as soon as the promise allows. Unlike a bucket it has no burst on top.
//
// Most callers want [Gate.Wait]:
//
//	gate, err := headgate.NewGate(5, time.Second)
//	...
//	for _, url := range urls {
//		if err := gate.Wait(ctx); err != nil {
//			return err
//		}
//		fetch(url)
//	}
//
// To charge what an action costs there is [Gate.WaitN]; to wait only so long,
// or not at all, [Gate.TryWait]; for loops, goroutines and streams [Throttle],
// [ForEach], [NewReader] and [NewWriter]; for a gate of each user [KeyedGate].
//
// The promise holds for the moments at which callers see Wait return, even if the
// scheduler wakes them late: a pass counts from when its caller runs, and until then
// nothing goes that depends on it. To every period 1/4096 is added, at least 1 and
// at most 25 microseconds, for what lies between the last look at the clock and the return.
//
// What no library can see remains: a processor that is taken away from a caller after
// that last look, for longer than what is added. On a busy machine about one pass in ten
// thousand is seen that much later than it was recorded; then a window that begins with it may
// hold more than n, if those that depend on it are seen with less delay. The promise is for
// clocks that are fine, as those of Linux, macOS and the BSDs are. Where the clock goes in
// ticks (on Windows of 0.5 to 15.6 ms) a window may be short of a period by a tick, too.
//
// A period in which callers are woken late takes that much longer, and timers are late by up
// to a millisecond. So of n in a period there pass, if callers always wait, about 99.5%
// with periods of 100 ms and more, 97% with 10 ms, 90% with 1 ms, and much less below that:
// rather than 1 in 100 microseconds let 1000 pass in 100 ms, if they may come together.
//
// A Gate has no goroutine, and no timer but while somebody waits. It is safe for use
// by many goroutines, and must not be copied. Make one with [NewGate].
type Gate struct {
	mu     sync.Mutex
	limit  int64
	period int64 // in nanoseconds, leeway included
	flying int64 // tokens let go whose waiters have not run yet: they count as passing now
	passes
	queue
	timer  *time.Timer // made when first needed
	armed  bool
	closed bool
	gone   bool   // closed because it was idle: see KeyedGate
	late   func() // for tests: runs in a waiter before it records its pass
}

const (
	maxTokens = 1 << 50 // so that sums of some thousand stay exact
	maxPeriod = time.Duration(maxExact) * time.Microsecond

	// A caller may see its pass later than that was recorded, if the processor is taken
	// away in between. This part of a period is added to it, within these bounds.
	leewayPart  = 4096
	leewayLeast = time.Microsecond
	leewayMost  = 25 * time.Microsecond

	// settled is how old a record may be at the last look at the clock.
	settled = int64(leewayLeast / 2)
)

// NewGate makes a gate through which at most n pass in any window of length
// period. It returns an [InvalidError] unless n is from 1 to 2^50 and period above
// 0 and at most 285 years. With short periods less than n pass, see [Gate]: take a period
// of 100 ms or more, with the n that belongs to it, where what is limited permits.
//
// A gate made in a [testing/synctest] bubble adds nothing to its period, because time stands
// still there while code runs: tests can count on whole periods. One that was made outside
// is as exact in a bubble, with the period that [Gate.Rate] tells; but no gate is for use
// both in a bubble and outside, or in two of them: their times have nothing to do with each other.
func NewGate(n int64, period time.Duration) (*Gate, error) {
	switch {
	case n < 1 || n > maxTokens:
		return nil, invalid("n", n, "a whole number from 1 to "+strconv.FormatInt(maxTokens, 10))
	case period <= 0:
		return nil, &InvalidError{"period", period.String(), "more than 0"}
	case period > maxPeriod:
		return nil, &InvalidError{"period", period.String(), "at most 285 years"}
	}
	return &Gate{limit: n, period: int64(period + leeway(period))}, nil
}

// leeway is 0 in a testing/synctest bubble: there the time stands still while code runs,
// and every moment is exact.
func leeway(period time.Duration) time.Duration {
	if inBubble() {
		return 0
	}
	return min(max(period/leewayPart, leewayLeast), leewayMost)
}

// inBubble says whether the time is that of a bubble: there it has no monotonic reading,
// and everywhere else it has (from the year 1885 to 2157).
func inBubble() bool {
	now := time.Now()
	return now == now.Round(0) //nolint:staticcheck // Equal does not tell whether there is such a reading
}

// started has a monotonic reading, which all times of gates are counted from.
var started = time.Now()

func nanos() int64 { return int64(time.Since(started)) }

// Most is the n of [NewGate]: as many tokens can pass together.
func (g *Gate) Most() int64 { return g.limit }

// Rate is the n of [NewGate] and the period, with what is added to that.
func (g *Gate) Rate() (n int64, period time.Duration) { return g.limit, time.Duration(g.period) }

// Wait returns nil when the caller's turn has come. It returns an error, and nothing is
// charged, if the context ends first (its error), at once if the context's deadline
// comes before the turn (a [DeadlineError]), or if the gate is closed ([ErrClosed]).
// Among callers who take different numbers of tokens a turn may be later than
// can be told at once; who cannot be refused at once then waits until his deadline.
func (g *Gate) Wait(ctx context.Context) error { return g.WaitN(ctx, 1) }

// WaitN is Wait for n tokens, which pass together. While it is at the head of the queue,
// those behind it wait, even if they need less. It returns an [InvalidError] if
// n is less than 1 or more than can ever pass.
func (g *Gate) WaitN(ctx context.Context, n int64) error {
	if n < 1 || n > g.limit {
		return fault(n, g.limit, "Gate")
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	now := nanos()
	if g.free(n, now) {
		return g.pass(n, now)
	}
	return g.stand(ctx, n, now)
}

// TryWait says whether the caller may go on: at once if timeout is 0, as soon as its
// turn has come if that is within timeout, and if timeout is negative however long
// it takes, unless the gate is closed. If the turn cannot come within timeout it
// returns false at once, as [Gate.Wait] does for a deadline. What answers false charges nothing.
func (g *Gate) TryWait(timeout time.Duration) bool {
	return g.tryWait(timeout) == nil
}

func (g *Gate) tryWait(timeout time.Duration) error {
	ctx := context.Background()
	if timeout < 0 || g.limit < 1 {
		return g.Wait(ctx)
	}
	g.mu.Lock()
	now := nanos()
	switch {
	case g.free(1, now):
		return g.pass(1, now)
	case g.closed:
		g.mu.Unlock()
		return ErrClosed
	case timeout == 0 || g.forecast(1, now) > timeout:
		g.mu.Unlock()
		return context.DeadlineExceeded
	}
	g.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return g.Wait(ctx)
}

// Peek says whether somebody who came now could pass at once, and if not, in how long
// his turn would come, after those who wait already, if nobody of them gives up; or
// earlier than it would, if they take different numbers of tokens.
// It consumes nothing. A closed gate is not open, and the wait is [Never].
func (g *Gate) Peek() (open bool, in time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.limit < 1 {
		return false, Never
	}
	now := nanos()
	if g.free(1, now) {
		return true, 0
	}
	return false, max(g.forecast(1, now), 1)
}

// Close ends all waiting, now and from now on, with [ErrClosed]. Whoever has
// been let go before has passed. Closing twice does nothing more.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	first := g.Head
	g.queue = queue{}
	g.disarm()
	g.mu.Unlock()
	wake(first)
}

// fault is the error for n tokens at a gate, or what has one for each key, of that limit.
func fault(n, limit int64, what string) error {
	if limit < 1 {
		return &InvalidError{"gate", "the zero " + what, "one made by New" + what}
	}
	return invalid("n", n, "from 1 to "+strconv.FormatInt(limit, 10)+", which is what can pass together")
}

// idle says whether nothing of the last period is known, and closes the gate if so.
func (g *Gate) idle() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(nanos(), g.period)
	if g.Head == nil && g.flying == 0 && g.held() == 0 {
		g.closed, g.gone = true, true
	}
	return g.closed
}

// free says whether n tokens may pass now.
func (g *Gate) free(n, now int64) bool {
	g.forget(now, g.period)
	return g.Head == nil && !g.closed && g.over(n) <= 0
}

// over is how many tokens have to be forgotten before n more may pass.
func (g *Gate) over(n int64) int64 { return g.held() + g.flying + n - g.limit }

// pass records that n tokens pass now, gives up the lock, and makes sure that the
// record is not old when the caller sees it.
//
// If the goroutine was held up on the way, the pass is recorded again, at the later
// time; each time a little further ahead, so that recording cannot be what holds it up.
// The record is needed only a period later, so nobody has relied on the earlier one,
// unless the hold-up was longer than that. If the gate has been dropped as idle then, it is too
// late to record anything, and pass returns ErrClosed: the caller has to ask another.
func (g *Gate) pass(n, now int64) error {
	i := g.record(now, n, g.period)
	g.wind(now) // to wake others here would take the time of all of them
	g.mu.Unlock()
	for ahead := int64(0); nanos()-now > settled; {
		ahead = 2*ahead + settled
		g.mu.Lock()
		if g.gone {
			g.mu.Unlock()
			return ErrClosed
		}
		now = nanos() + ahead
		i = g.postpone(i, now, n, g.period)
		g.mu.Unlock()
	}
	return nil
}

// refusal is the error for a context that ends before the turn of n tokens that
// come now, if it does.
func (g *Gate) refusal(ctx context.Context, n, now int64) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	wait, left := g.forecast(n, now), time.Until(deadline)
	if wait <= left {
		return nil
	}
	return &DeadlineError{Wait: wait}
}
