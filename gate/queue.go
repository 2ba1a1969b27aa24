package gate

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/waitline"
)

// queue holds the callers that wait at a [Gate], in the order in which they came.
type queue struct {
	waitline.List[waiter, *waiter]
	waiting int64 // tokens, of each waiter at most maxCount
}

// maxCount keeps the sum of any number of waiters exact.
const maxCount = 1 << 32

type waiter struct {
	waitline.Links[waiter]
	n    int64
	wake chan struct{} // has room for one
}

// look wakes w, which then decides whether it passes.
func (w *waiter) look() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (q *queue) push(w *waiter) {
	q.Push(w)
	q.waiting += min(w.n, maxCount)
	if w == q.Head {
		w.look()
	}
}

// remove wakes the waiter behind w if w was the first.
func (q *queue) remove(w *waiter) {
	if w == q.Head && w.Next != nil {
		w.Next.look()
	}
	q.Remove(w)
	q.waiting -= min(w.n, maxCount)
}

// enqueue waits at the end of the queue until n tokens pass. It unlocks the gate. Only the first of
// the queue has a timer, and passes by itself. If ctx ends, the caller leaves; but a start that
// comes no later than the deadline is in time.
func (g *Gate) enqueue(ctx context.Context, n, now int64) error {
	err := ErrClosed
	if !g.closed {
		err = g.refusal(ctx, n, now)
	}
	if err != nil {
		g.mu.Unlock()
		return err
	}
	w := &waiter{n: n, wake: make(chan struct{}, 1)}
	g.push(w)
	var due <-chan time.Time
	for done := ctx.Done(); ; {
		g.mu.Unlock()
		select {
		case <-due:
		case <-w.wake:
		case <-done:
			err, done = ctx.Err(), nil
		}
		g.mu.Lock()
		now = nanos()
		g.forget(now, g.period)
		switch {
		case g.closed || err != nil && !(errors.Is(err, context.DeadlineExceeded) && g.inTime(w)):
			if g.closed {
				err = ErrClosed
			}
			g.remove(w)
			g.mu.Unlock()
			return err
		case w != g.Head:
		case g.excess(n) > 0:
			due = time.After(g.left(g.excess(n), now))
		default:
			g.remove(w)
			g.pass(n, nanos())
			return nil
		}
	}
}

// inTime reports whether w may pass now, with all that are before it.
func (g *Gate) inTime(w *waiter) bool {
	n := w.n
	for before := w.Prev; before != nil && n <= g.limit; before = before.Prev {
		n += before.n
	}
	return g.excess(n) <= 0
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
