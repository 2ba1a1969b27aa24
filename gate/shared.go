package gate

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/waitline"
)

// SharedGate is a [Gate] for all processes that share a store.
//
//	g, err := gate.NewShared(store, "partner-api", 5, time.Second)
//	...
//	if err := g.Wait(ctx); err != nil {
//		return err
//	}
//	call()
//
// In any window of length period, at most n callers of all processes pass. If they then send
// requests over a network, more than n can arrive in a period: see the package comment. A caller
// passes with one of n permits, which it keeps for a period. The store counts the permits and
// reports when one is released, so no caller polls. docs/design/gate.md says how many usually pass.
//
// Callers of one process pass first come, first served. Across processes, the order is approximate:
// a process can pass more than twice as often as another. A process that dies keeps its permits for
// two periods and a second.
//
// It is safe for use by many goroutines. Make one with [NewShared].
type SharedGate struct {
	store  concurrency.Store
	key    string
	n      int64
	period time.Duration
	leeway time.Duration // added to the period: a caller may see its pass later

	lines waitline.Turnstiles // of the one key: the first caller asks the store

	life context.Context //nolint:containedctx // ends when the gate is closed
	end  context.CancelCauseFunc
}

const (
	maxShared = 4000 * time.Hour

	// A permit expires after two periods and this time, so that it is rarely renewed.
	expiryMargin = time.Second

	// This part of a period is its leeway, but at most maxSharedLeeway.
	sharedLeewayPart = 20
	maxSharedLeeway  = 5 * time.Millisecond
)

// NewShared returns a gate for all processes that name the same key in store. The store can be a
// redisstore.Store. All processes must give the same n and period. n is at most 65,535 and period
// at most 4000h. It returns a [headgate.InvalidError] for other arguments.
func NewShared(
	store concurrency.Store, key string, n int64, period time.Duration,
) (*SharedGate, error) {
	if period <= 0 || period > maxShared {
		return nil, invalid("period", period.String(), "more than 0, and at most 4000h")
	}
	leeway := max(min(period/sharedLeewayPart, maxSharedLeeway), minLeeway)
	if _, err := concurrency.New(store, n, 2*period+expiryMargin); err != nil {
		return nil, err
	}
	g := &SharedGate{
		store: store, key: key, n: n, period: period, leeway: leeway,
		lines: waitline.Turnstiles{Watch: store.WatchPermits},
	}
	g.life, g.end = context.WithCancelCause(context.Background())
	return g, nil
}

// Burst returns 1, because a caller passes with one permit.
func (g *SharedGate) Burst() int64 { return min(g.n, 1) }

// Rate returns the n of [NewShared] and the period, which the gate makes up to 5 ms longer.
func (g *SharedGate) Rate() (n int64, period time.Duration) { return g.n, g.period + g.leeway }

// WaitN is [SharedGate.Wait], so that a SharedGate is a [Waiter]. n must be 1.
func (g *SharedGate) WaitN(ctx context.Context, n int64) error {
	if n != 1 {
		return invalidTokens(n, g.Burst())
	}
	return g.Wait(ctx)
}

// Wait waits until the caller passes. It returns an error, and the caller does not pass, if ctx
// ends first, if the gate is closed ([ErrClosed]), or if the store is unavailable.
func (g *SharedGate) Wait(ctx context.Context) error {
	return g.alive(ctx, func(ctx context.Context) error {
		wake, leave, err := g.lines.Enter(ctx, g.key)
		if err != nil {
			return err
		}
		defer leave()
		return g.first(ctx, wake)
	})
}

// TryWait waits for at most timeout and reports whether the caller may go on. With a timeout of 0,
// it does not wait in line. A negative timeout is a [headgate.InvalidError]. Other errors are those
// of [SharedGate.Wait].
func (g *SharedGate) TryWait(ctx context.Context, timeout time.Duration) (passed bool, err error) {
	switch {
	case timeout < 0:
		return false, invalid("timeout", timeout.String(), "at least 0")
	case timeout == 0:
		err = g.alive(ctx, func(ctx context.Context) error { return g.first(ctx, nil) })
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

// Peek reports whether a caller could pass now. If not, it returns the longest time that the caller
// would wait if no others waited or came.
func (g *SharedGate) Peek(ctx context.Context) (open bool, in time.Duration, err error) {
	if g.life.Err() != nil {
		return false, headgate.Never, ErrClosed
	}
	d, err := g.store.AcquirePermit(ctx, g.request()) // acquires nothing without an ID
	return d.Allowed(), d.RetryAfter, err
}

// Close makes all current and later waits in this process return [ErrClosed]. It does not close the
// store, and returns nil.
func (g *SharedGate) Close() error {
	g.end(ErrClosed)
	return nil
}

// alive calls do with a context that ends with the gate, too, and returns why it ended.
func (g *SharedGate) alive(ctx context.Context, do func(context.Context) error) error {
	if g.n < 1 {
		return invalidTokens(1, 0)
	}
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

func (g *SharedGate) request() concurrency.Request {
	return concurrency.Request{Key: g.key, Limit: g.n, TTL: 2*g.period + expiryMargin}
}

// first acquires a permit for the first in line, and passes. It waits for one with the wake of the
// line. Without, it returns a DeadlineError if no permit is free.
func (g *SharedGate) first(ctx context.Context, wake <-chan struct{}) error {
	r := g.request()
	r.Notify = wake != nil
	for denied := time.Duration(1); ; denied++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _ = rand.Read(r.ID[:]) // never fails
		asked := time.Now()
		d, err := g.store.AcquirePermit(ctx, r)
		if err != nil {
			return err
		}
		if d.Allowed() {
			passed, err := g.pass(ctx, r, asked)
			if passed || err != nil {
				return err
			}
			continue
		}
		if wake == nil {
			return &headgate.DeadlineError{Wait: d.RetryAfter}
		}
		g.pause(ctx, wake, denied, d.RetryAfter)
	}
}

// pause waits until a permit may be free. When one is released it waits for another half of the
// leeway, divided by how often the caller was denied: the one that waits longest asks first, also
// if it is farther from the store.
func (g *SharedGate) pause(
	ctx context.Context, wake <-chan struct{}, denied, expiry time.Duration,
) {
	select {
	case <-time.After(expiry):
	case <-ctx.Done():
	case <-wake:
		_ = await.Sleep(ctx, g.leeway/2/denied)
	}
}

// pass passes with the permit of r, which was acquired after asked, and releases it when
// the period is over. It does not pass if the permit has expired.
func (g *SharedGate) pass(
	ctx context.Context, r concurrency.Request, asked time.Time,
) (passed bool, err error) {
	for span := g.period + g.leeway; ; {
		now := time.Now()
		if asked.Add(r.TTL).Before(now.Add(span)) {
			asked = now
			if held, err := g.store.RenewPermit(ctx, r); err != nil || !held {
				return false, err
			}
			continue
		}
		release := time.AfterFunc(span, func() { //nolint:contextcheck // ctx may have ended then
			_, _ = g.store.ReleasePermit(context.Background(), r) // after an error it expires
		})
		if time.Since(now) < g.leeway/2 {
			return true, nil
		}
		if !release.Stop() { // otherwise the caller would see this pass too late
			return false, nil
		}
	}
}
