package gate

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
)

// maxCount keeps the sum of any number of callers that wait exact.
const maxCount = 1 << 32

// enqueue waits in line until n tokens pass. It unlocks the gate. Only the first of the line has a
// timer. If that is late, the first passes even if its deadline has come meanwhile.
func (g *Gate) enqueue(ctx context.Context, n, now int64) error {
	err := ErrClosed
	if !g.closed {
		err = g.refusal(ctx, n, now)
	}
	if err != nil {
		g.mu.Unlock()
		return err
	}
	if g.end == nil {
		g.end = make(chan struct{})
	}
	g.waiting += min(n, maxCount)
	g.mu.Unlock()
	_, leave, err := g.line.Enter(ctx, "")
	g.mu.Lock()
	for err == nil {
		g.forget(nanos(), g.period)
		switch passes := g.excess(n) <= 0; {
		case g.closed:
			err = ErrClosed
		case passes && !errors.Is(ctx.Err(), context.Canceled):
			g.waiting -= min(n, maxCount)
			leave()
			g.pass(n, nanos())
			return nil
		case ctx.Err() != nil:
			err = ctx.Err()
		default:
			due := time.After(g.left(g.excess(n), nanos()))
			g.mu.Unlock()
			select {
			case <-due:
			case <-g.end:
			case <-ctx.Done():
			}
			g.mu.Lock()
		}
	}
	g.waiting -= min(n, maxCount)
	g.mu.Unlock()
	if leave != nil {
		leave()
	}
	return err
}

// left is the time until the nth of the tokens used is forgotten.
func (g *Gate) left(n, now int64) time.Duration {
	return time.Duration(max(g.period-(now-g.passedAt(n)), 0))
}

// forecast is the time until n tokens that are asked for now pass, after all that wait, if no
// caller gives up and all are woken on time; or [headgate.Never], if that is too long. It
// is exact if all wait for one token; otherwise they may pass later, and never earlier.
func (g *Gate) forecast(n, now int64) time.Duration {
	// Tokens that wait pass in groups of limit, each a period after the group before it. Those
	// of the first pass when what is used is forgotten.
	nth := g.waiting + n
	rounds := (nth - 1) / g.limit
	hi, lo := bits.Mul64(uint64(rounds), uint64(g.period))
	var wait time.Duration
	if used := g.excess(nth - rounds*g.limit); used > 0 {
		wait = g.left(used, now)
	}
	if hi != 0 || lo > uint64(headgate.Never-wait) {
		return headgate.Never
	}
	return time.Duration(lo) + wait
}
