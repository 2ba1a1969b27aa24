// Package gate lets at most n callers pass in any window of a given length.
//
// A [Gate] serves one process, and a [SharedGate] serves all processes that share a store.
// [NewReader] and [NewWriter] pace streams with either.
//
// A caller passes at the moment at which Wait returns. If callers then send requests over a
// network, up to 2n can arrive within a period, and more if the delays differ by more than a
// period. If the receiver counts strictly, make the period longer by twice the largest delay, or
// use permits and concurrency.Permit.ReleaseAfter: docs/waiting.md, "A strict API".
package gate

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/waitline"
)

// ErrClosed is returned by methods that wait if their gate is closed, before or during the wait.
var ErrClosed = errors.New("gate: closed")

// Gate lets at most n callers pass in any window of length period, wherever it begins.
// The others wait, first come, first served.
//
//	g, err := gate.New(5, time.Second)
//	...
//	for _, url := range urls {
//		if err := g.Wait(ctx); err != nil {
//			return err
//		}
//		fetch(url)
//	}
//
// Most callers want [Gate.Wait]. The promise holds for the moments at which callers see Wait
// return, even if the scheduler wakes them late: a pass is recorded when its caller runs.
// docs/design/gate.md explains how. While callers wait all the time, about 99.5% of n pass in a
// period of 100 ms or more, and 90% in a period of 1 ms (go test -bench Throughput ./gate).
//
// A Gate has no goroutine, and a timer only while callers wait. It is safe for use
// by many goroutines and must not be copied. Make one with [New].
type Gate struct {
	mu     sync.Mutex
	limit  int64
	period int64 // in nanoseconds, leeway included
	history
	line    waitline.Turnstiles // of the one key
	waiting int64               // tokens of the line, of each caller at most maxCount
	end     chan struct{}       // closed by Close; made when first needed
	closed  bool
}

const (
	maxTokens = 1 << 50 // so that sums of some thousand are exact
	maxPeriod = (1<<53 - 1) * time.Microsecond

	// A caller may see its pass later than that was recorded, if the scheduler takes the
	// processor away in between. This part of a period is added to it, within these bounds.
	leewayPart = 4096
	minLeeway  = time.Microsecond
	maxLeeway  = 25 * time.Microsecond

	// settled is how old a record may be at the last look at the clock.
	settled = int64(minLeeway / 2)
)

// New returns a gate through which at most n tokens pass in any window of length period. It returns
// a [headgate.InvalidError] unless n is from 1 to 2^50, and period is above 0 and at most 285
// years. With short periods, fewer than n pass: prefer 1000 in 100 ms to 1 in 100 microseconds.
//
// A gate makes its period up to 25 microseconds longer, because Wait returns a little after the
// pass is recorded. [Gate.Rate] returns the longer period.
func New(n int64, period time.Duration) (*Gate, error) {
	switch {
	case n < 1 || n > maxTokens:
		return nil, invalid("n", strconv.FormatInt(n, 10),
			"from 1 to "+strconv.FormatInt(maxTokens, 10))
	case period <= 0:
		return nil, invalid("period", period.String(), "more than 0")
	case period > maxPeriod:
		return nil, invalid("period", period.String(), "at most 285 years")
	}
	leeway := min(max(period/leewayPart, minLeeway), maxLeeway)
	return &Gate{limit: n, period: int64(period + leeway)}, nil
}

// started has a monotonic reading, from which all times of gates are counted.
var started = time.Now()

func nanos() int64 { return int64(time.Since(started)) }

// Burst returns the n of [New], the most tokens that can pass together.
func (g *Gate) Burst() int64 { return g.limit }

// Rate returns the n of [New] and the period, which New has made a little longer.
func (g *Gate) Rate() (n int64, period time.Duration) { return g.limit, time.Duration(g.period) }

// Wait waits until the caller passes. It returns an error, and charges nothing, if ctx ends first,
// or if the gate is closed ([ErrClosed]). If Wait can tell at once that the caller would not pass
// before the deadline of ctx, it returns a [headgate.DeadlineError].
func (g *Gate) Wait(ctx context.Context) error { return g.WaitN(ctx, 1) }

// WaitN waits until n tokens pass together. While the caller is first in line, later callers wait
// behind it, even if they need fewer tokens. It returns a [headgate.InvalidError] unless n is from
// 1 to the n of [New].
func (g *Gate) WaitN(ctx context.Context, n int64) error {
	return g.waitAtMost(ctx, headgate.Never, n)
}

func (g *Gate) waitAtMost(ctx context.Context, timeout time.Duration, n int64) error {
	if n < 1 || n > g.limit {
		return invalidTokens(n, g.limit)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	now := nanos()
	if g.open(n, now) {
		g.pass(n, now)
		return nil
	}
	if timeout != headgate.Never {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	return g.enqueue(ctx, n, now)
}

// TryWait waits for at most timeout and reports whether the caller may go on. It returns false at
// once, and charges nothing, if the caller would not pass in that time. A negative timeout is a
// [headgate.InvalidError]. Other errors are those of [Gate.Wait].
func (g *Gate) TryWait(ctx context.Context, timeout time.Duration) (passed bool, err error) {
	if timeout < 0 {
		return false, invalid("timeout", timeout.String(), "at least 0")
	}
	err = g.waitAtMost(ctx, timeout, 1)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return err == nil, err
}

// Peek reports whether a caller could pass now, and otherwise how long it would wait in line. It
// charges nothing. If callers wait for different numbers of tokens, the real wait may be longer. At
// a closed gate, the wait is [headgate.Never].
func (g *Gate) Peek() (open bool, in time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed || g.limit < 1 {
		return false, headgate.Never
	}
	now := nanos()
	if g.open(1, now) {
		return true, 0
	}
	return false, max(g.forecast(1, now), 1)
}

// Close makes all current and later waits return [ErrClosed]. It returns nil.
func (g *Gate) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end != nil && !g.closed {
		close(g.end)
	}
	g.closed = true
	return nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

// invalidTokens is the error for n tokens at a gate of that limit.
func invalidTokens(n, limit int64) error {
	if limit < 1 {
		return invalid("gate", "the zero value", "one made by New or NewShared")
	}
	return invalid("n", strconv.FormatInt(n, 10),
		"from 1 to "+strconv.FormatInt(limit, 10)+", the burst of the gate")
}

// open reports whether n tokens may pass now.
func (g *Gate) open(n, now int64) bool {
	g.forget(now, g.period)
	return g.waiting == 0 && !g.closed && g.excess(n) <= 0
}

// excess is how many tokens have to be forgotten before n more may pass.
func (g *Gate) excess(n int64) int64 { return g.used() + n - g.limit }

// pass records that n tokens pass now, unlocks, and makes sure that the record is not old
// when the caller sees it.
//
// If the goroutine was held up, the pass is recorded again, at a later time; each time a little
// further ahead, so that recording cannot be what holds it up. No decision has relied on the
// earlier record, because that is needed only a period later, unless the hold-up
// was longer than that.
func (g *Gate) pass(n, now int64) {
	i := g.record(now, n, g.period)
	g.mu.Unlock()
	for ahead := int64(0); nanos()-now > settled; {
		ahead = 2*ahead + settled
		g.mu.Lock()
		now = nanos() + ahead
		i = g.postpone(i, now, n, g.period)
		g.mu.Unlock()
	}
}

// refusal is the error if n tokens that are asked for now cannot pass before the deadline of ctx.
func (g *Gate) refusal(ctx context.Context, n, now int64) error {
	deadline, ok := ctx.Deadline()
	if !ok {
		return nil
	}
	if wait := g.forecast(n, now); wait >= time.Until(deadline) {
		return &headgate.DeadlineError{Wait: wait}
	}
	return nil
}
