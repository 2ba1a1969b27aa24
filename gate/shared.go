package gate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/waitline"
)

// SharedGate is a [Gate] for all processes that share a store.
//
//	g, err := gate.NewShared(store, "partner-api", 5, time.Second, 0)
//	...
//	if err := g.Wait(ctx); err != nil {
//		return err
//	}
//	call()
//
// In any window of length period, at most n callers of all processes see Wait return. The
// store's clock orders them; clocks of the machines need not agree. Callers of one
// process pass first come, first served, and the first of each process books its start time in
// the store, so nobody polls. A process that dies delays others by at most a period and
// a slack.
//
// The store keeps start times apart by the period and the slack. So at least n pass in a period and
// a slack, if callers wake within the slack; on a busy machine fewer. docs/design/gate.md says how
// many, and why never more than n pass in a period.
//
// It is safe for use by many goroutines. Make one with [NewShared].
type SharedGate struct {
	store headgate.Store
	key   string
	limit headgate.Limit // books start times; its window is the period and the slack
	// In nanoseconds. A pass uses its tokens for a span: the period and a leeway. Starts and ends
	// in the ledger are multiples of the grain, which bounds its size.
	span, leeway, grain int64

	line    waitline.Turnstile // the first books and passes
	waiting atomic.Int64       // tokens of those in line

	mu     sync.Mutex
	ledger ledger // tokens that are booked and not used

	late func()          // for tests: runs after each sleep
	life context.Context //nolint:containedctx // ends when the gate is closed
	end  context.CancelCauseFunc
}

const (
	// The default slack is what a busy machine may be late, within these bounds, but not more
	// than a quarter of a period that is long enough; see docs/design/gate.md.
	minSlack  = 5 * time.Millisecond
	busySlack = 25 * time.Millisecond

	// maxShared bounds the period, the slack and how far ahead a start is booked, so that sums
	// of them are exact.
	maxShared = 71 * 365 * 24 * time.Hour

	// A pass counts from when it was recorded. Its caller may see it later, if the scheduler
	// takes the processor away: by this part of the slack, of which half may have passed at the
	// last look at the clock.
	leewayOfSlack = 5

	// maxBookings bounds how often a caller books again because it was late.
	maxBookings = 20

	// batchPart is the part of n that is booked at once for several callers of this process.
	// At most this part is unused while so many tokens are not free together.
	batchPart = 16

	grains = 4096 // of a period
)

// errLate is the error of a caller that was late for every start that it had booked.
var errLate = errors.New("later than the slack")

// NewShared returns a gate for all processes that name the same key in store. All must give
// the same n, period and slack. A slack of 0 means a quarter of period, but at least 5 and at most
// 25 ms, or a hundredth of period if that is longer. n is at most 65,535. It returns a
// [headgate.InvalidError] for other arguments.
func NewShared(
	store headgate.Store, key string, n int64, period, slack time.Duration,
) (*SharedGate, error) {
	if period <= 0 || period > maxShared {
		return nil, invalidPeriod(period, "more than 0, and at most 71 years")
	}
	if slack == 0 {
		slack = max(min(period/4, busySlack), period/100, minSlack)
	}
	if slack < 0 || slack > maxShared {
		return nil, &headgate.InvalidError{
			Field: "slack", Value: slack.String(), Want: "0 for the default, or up to 71 years",
		}
	}
	// The store counts in microseconds: a start may be one earlier than what it says.
	window := ceilTo(period+slack, time.Microsecond) + time.Microsecond
	limit := headgate.SlidingLog(n, window).Named("gate")
	if _, err := headgate.NewLimiter(store, limit); err != nil {
		return nil, err
	}
	g := &SharedGate{store: store, key: key, limit: limit, late: func() {}}
	g.leeway = int64(max(slack/leewayOfSlack, minLeeway))
	g.span = int64(period) + g.leeway
	g.grain = max(g.span/grains, 1)
	g.life, g.end = context.WithCancelCause(context.Background())
	return g, nil
}

// Burst returns the n of [NewShared]: as many tokens can pass together.
func (g *SharedGate) Burst() int64 { return g.limit.Capacity() }

// Rate returns the n of [NewShared], and the period and the slack together.
func (g *SharedGate) Rate() (n int64, period time.Duration) {
	return g.limit.Capacity(), g.limit.Period()
}

// Wait is WaitN for one token.
func (g *SharedGate) Wait(ctx context.Context) error { return g.WaitN(ctx, 1) }

// WaitN waits until n tokens pass together.
// It returns an error, and nothing has passed, if ctx ends before; if the start would come
// after its deadline (a [headgate.DeadlineError], at once for the first in line); if
// the gate is closed ([ErrClosed]); or if the store is unavailable.
func (g *SharedGate) WaitN(ctx context.Context, n int64) error {
	if n < 1 || n > g.Burst() {
		return invalidTokens(n, g.Burst())
	}
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(maxShared)
	}
	return g.wait(ctx, n, until)
}

// TryWait waits for at most timeout and reports whether the caller may go on.
// A timeout of 0 does not wait in line, and a negative one waits however long it takes.
// The errors are the others of [SharedGate.WaitN].
func (g *SharedGate) TryWait(ctx context.Context, timeout time.Duration) (passed bool, err error) {
	switch {
	case timeout < 0:
		err = g.Wait(ctx)
	case timeout == 0:
		err = g.alive(ctx, func(ctx context.Context) error { return g.first(ctx, 1, time.Now()) })
	default:
		ctx, cancel := context.WithTimeoutCause(ctx, timeout, &headgate.DeadlineError{})
		defer cancel()
		err = g.Wait(ctx)
	}
	passed = err == nil
	if _, late := errors.AsType[*headgate.DeadlineError](err); late {
		err = nil
	}
	return passed, err
}

// Peek reports whether a caller could pass now, and otherwise in how long.
// It charges nothing, and does not count callers that wait in a process and have booked nothing.
func (g *SharedGate) Peek(ctx context.Context) (open bool, in time.Duration, err error) {
	if g.life.Err() != nil {
		return false, headgate.Never, ErrClosed
	}
	d, err := g.store.Take(ctx, headgate.Request{Key: g.key, Limit: g.limit})
	return d.Allowed(), d.RetryAfter, err
}

// Close ends all waiting in this process, now and later, with [ErrClosed].
// It does not close the store.
func (g *SharedGate) Close() { g.end(ErrClosed) }

// wait waits in line and passes.
func (g *SharedGate) wait(ctx context.Context, n int64, until time.Time) error {
	g.waiting.Add(n)
	defer g.waiting.Add(-n)
	return g.alive(ctx, func(ctx context.Context) error {
		if err := g.line.Enter(ctx); err != nil {
			return err
		}
		defer g.line.Leave()
		return g.first(ctx, n, until)
	})
}

// alive calls do with a context that ends with the gate, too, and returns why it ended.
func (g *SharedGate) alive(ctx context.Context, do func(context.Context) error) error {
	if g.life.Err() != nil {
		return ErrClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(g.life, func() { cancel(ErrClosed) }) //nolint:contextcheck // its own
	defer stop()
	err := do(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// first books for the first in line, and passes.
func (g *SharedGate) first(ctx context.Context, n int64, until time.Time) error {
	for booked := 0; ; {
		wait, ok := g.pass(n)
		switch {
		case ok && wait == 0:
			return nil
		case ok && wait > time.Until(until):
			return &headgate.DeadlineError{Wait: wait}
		case ok:
			if err := sleep(ctx, wait); err != nil {
				return err
			}
			g.late()
		case booked == maxBookings:
			return fmt.Errorf("gate: the store answers or this machine wakes %w of %s: increase it",
				errLate, g.limit.Period()-time.Duration(g.span-g.leeway))
		default:
			booked++
			if err := g.book(ctx, n, until); err != nil {
				return err
			}
		}
	}
}

// pass passes if n tokens are free for as long as a pass uses them. If not, it returns in how long
// they are, if that is known.
func (g *SharedGate) pass(n int64) (wait time.Duration, ok bool) {
	for {
		g.mu.Lock()
		now := nanos()
		g.ledger.forget(now)
		at, ok := g.ledger.earliest(now, n, g.span)
		if !ok || at > now {
			g.mu.Unlock()
			return time.Duration(at - now), ok
		}
		until := g.ceil(now + g.span)
		g.ledger.add(now, until, -n)
		g.mu.Unlock()
		if nanos()-now <= g.leeway/2 {
			return 0, true
		}
		g.mu.Lock() // the caller would see this pass too late
		g.ledger.add(now, until, n)
		g.mu.Unlock()
	}
}

// book books a start for n tokens in the store, and in the same step for some of those behind.
func (g *SharedGate) book(ctx context.Context, n int64, until time.Time) error {
	most := min(max(time.Until(until), 0), maxShared)
	cost := max(n, min(g.waiting.Load(), g.Burst()/batchPart))
	for {
		asked := nanos()
		d, err := g.store.Take(ctx, headgate.Request{
			Key: g.key, Limit: g.limit, Cost: cost, MaxWait: most,
		})
		if err != nil {
			return err
		}
		if d.Within(most) {
			g.credit(asked, nanos(), int64(d.RetryAfter), cost)
			return nil
		}
		if cost == n {
			return &headgate.DeadlineError{Wait: d.RetryAfter}
		}
		cost = n
	}
}

// credit adds n tokens to the ledger. The store decided between asked and answered: from the latest
// start until a window after the earliest one, they are this process's.
func (g *SharedGate) credit(asked, answered, wait, n int64) {
	from := g.ceil(answered + wait)
	until := g.ceil(asked+wait+int64(g.limit.Period()-time.Microsecond)) - g.grain
	if wait == 0 {
		from = answered
	}
	if from >= until {
		return // the answer took a whole window
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ledger.add(from, until, n)
}

func (g *SharedGate) ceil(at int64) int64 { return ceilTo(at, g.grain) }

// ceilTo rounds n up to a multiple of unit.
func ceilTo[T ~int64](n, unit T) T {
	rest := n % unit
	if rest < 0 {
		rest += unit
	}
	if rest == 0 {
		return n
	}
	return n + unit - rest
}
