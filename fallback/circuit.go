package fallback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/sony/gobreaker/v2"
)

// ErrDegraded is wrapped by the error of a call that only the store can answer, if the store is
// unavailable.
//
// The error also wraps the store's error, unless that error is of a context: the time budget, or
// another caller's context. So a caller gets context.Canceled or context.DeadlineExceeded only if
// its own context has ended.
var ErrDegraded = errors.New("fallback: store unavailable")

type degradedError struct{ why error }

func (e *degradedError) Error() string { return ErrDegraded.Error() + ": " + e.why.Error() }

func (e *degradedError) Unwrap() []error {
	if errors.Is(e.why, context.DeadlineExceeded) || errors.Is(e.why, context.Canceled) {
		return []error{ErrDegraded} // the time budget, or another caller's context
	}
	return []error{ErrDegraded, e.why}
}

// circuit calls a store within a time budget, until it fails too often.
type circuit struct {
	server      string // for messages; empty: the only one
	breaker     *gobreaker.TwoStepCircuitBreaker[struct{}]
	timeout     time.Duration
	openTimeout time.Duration
	onChange    func(degraded bool, err error)
	counting    atomic.Bool // a call is under way that the breaker counts

	mu       sync.Mutex
	failures uint64
	err      error // the last failure
	open     bool
	retryAt  time.Time // when an open circuit lets a call through
}

var (
	// errExited is the failure of a call that did not return.
	errExited = errors.New("the store's call panicked or exited its goroutine")

	// errUncounted stands for an error that says nothing about the store.
	errUncounted = errors.New("not counted")

	// errBadState is reported to the circuit for an error of one key: the store has answered.
	errBadState = errors.New("bad state")
)

// interval is the time in which failures are counted together.
const interval = 10 * time.Second

func newCircuit(o Options, server string) *circuit {
	limit := uint32(min(o.Failures, 1<<30))
	return &circuit{
		server: server, timeout: o.Timeout, openTimeout: o.OpenTimeout, onChange: o.OnChange,
		breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
			Interval:     interval,
			BucketPeriod: time.Second,
			Timeout:      o.OpenTimeout,
			ReadyToTrip: func(c gobreaker.Counts) bool {
				half := c.TotalFailures >= c.TotalSuccesses
				return c.ConsecutiveFailures >= limit || c.TotalFailures >= limit && half
			},
			IsExcluded:   func(err error) bool { return errors.Is(err, errUncounted) },
			IsSuccessful: func(err error) bool { return err == nil || errors.Is(err, errBadState) },
		}),
	}
}

// do runs call, unless the circuit is open: then it returns the last failure.
//
// The breaker counts one call at a time, and calls that overlap it are not counted. So a late
// answer is one failure, however many callers wait for it. If a caller has less time than the store
// may take, a late answer is no failure: else callers could open the circuit of a store that works.
func (c *circuit) do(ctx context.Context, call func(context.Context) error) error {
	if !c.counting.CompareAndSwap(false, true) {
		if !c.isClosed() {
			return c.lastFailure()
		}
		_, err := c.attempt(ctx, call)
		return err
	}
	defer c.counting.Store(false)
	done, err := c.breaker.Allow()
	if err != nil {
		return c.lastFailure()
	}
	counted := errExited // unless attempt returns
	defer func() {
		done(counted)
		c.report(c.breaker.State())
	}()
	hurried := c.budget(ctx) < c.timeout
	counted, err = c.attempt(ctx, call)
	if hurried && isLate(err) {
		counted = errUncounted
	}
	return err
}

func (c *circuit) isClosed() bool { return c.breaker.State() == gobreaker.StateClosed }

// budget is the time for a call. A caller with an earlier deadline keeps a quarter of its time for
// the answer.
func (c *circuit) budget(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return c.timeout
	}
	return min(c.timeout, time.Until(deadline)/4*3)
}

// attempt runs call within the time budget. It also returns what counts for the breaker.
func (c *circuit) attempt(
	ctx context.Context, call func(context.Context) error,
) (counted, err error) {
	within, cancel := context.WithTimeout(ctx, c.budget(ctx))
	defer cancel()
	counted = errExited // unless call returns
	defer func() { c.note(counted) }()
	err = call(within)
	counted = err
	switch {
	case err == nil:
	case callersError(ctx, err) != nil || busy(err):
		counted = errUncounted
	case errors.Is(err, headgate.ErrBadState):
		counted = errBadState
	}
	return counted, err
}

// callersError returns the error that concerns only the caller: the end of its context, or an error
// of an available store. For any other error it returns nil.
func callersError(ctx context.Context, err error) error {
	if headgate.Unavailable(ctx, err) {
		return nil
	}
	return cmp.Or(ctx.Err(), err)
}

// isLate reports whether err is the end of a context's time, or of a connection's.
func isLate(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && e.Timeout()
}

func busy(err error) bool {
	e, ok := errors.AsType[interface {
		error
		Busy() bool
	}](err)
	return ok && e.Busy()
}

func (c *circuit) note(counted error) {
	if counted == nil || errors.Is(counted, errUncounted) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures++
	if !errors.Is(counted, errBadState) {
		c.err = counted
	}
}

// report records the state of the breaker after a counted call, and calls onChange if the circuit
// opened or closed. Only counted calls change that, and there is one at a time.
func (c *circuit) report(state gobreaker.State) {
	open := state != gobreaker.StateClosed
	var err error
	c.mu.Lock()
	switch state {
	case gobreaker.StateOpen:
		// The breaker is still open at the very end of its timeout.
		c.retryAt = time.Now().Add(c.openTimeout + time.Microsecond)
	case gobreaker.StateHalfOpen:
		c.retryAt = time.Now()
	}
	changed := c.open != open
	if c.open = open; open {
		err = c.err
		if c.server != "" {
			err = fmt.Errorf("%s: %w", c.server, err)
		}
	}
	c.mu.Unlock()
	if changed && c.onChange != nil {
		c.onChange(open, err)
	}
}

func (c *circuit) lastFailure() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// retryAfter is the time until the store is called again, in whole microseconds, and at least what
// a call may take.
func (c *circuit) retryAfter() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	wait := time.Until(c.retryAt) + time.Microsecond - 1
	return max(wait.Truncate(time.Microsecond), c.timeout)
}

// addTo adds what c has counted to s.
func (c *circuit) addTo(s *Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Degraded = s.Degraded || c.open && time.Since(c.retryAt) < interval
	s.Failures += c.failures
}
