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
	n        int64
	ready    chan struct{} // closed when it may run: released, or the gate was closed
	released bool
}

func (q *queue) push(w *waiter) {
	q.Push(w)
	q.count(w, 1)
}

func (q *queue) remove(w *waiter) {
	q.Remove(w)
	q.count(w, -1)
}

// cut removes the waiters before w, which stay linked, and returns the first of them.
func (q *queue) cut(w *waiter) (first *waiter) {
	if w == q.Head {
		return nil
	}
	first, q.Head = q.Head, w
	if w == nil {
		q.Tail = nil
		return first
	}
	w.Prev.Next, w.Prev = nil, nil
	return first
}

func (q *queue) count(w *waiter, sign int64) { q.waiting += sign * min(w.n, maxCount) }

// enqueue waits at the end of the queue until n tokens pass. It unlocks the gate.
func (g *Gate) enqueue(ctx context.Context, n, now int64) error {
	err := ErrClosed
	if !g.closed {
		err = g.refusal(ctx, n, now)
	}
	if err != nil {
		g.mu.Unlock()
		return err
	}
	w := &waiter{n: n, ready: make(chan struct{})}
	g.push(w)
	g.release(now) // a caller that waits anyway has the time for it

	select {
	case <-w.ready:
	case <-ctx.Done():
		if err := g.giveUp(ctx, w); err != nil {
			return err
		}
	}
	return g.run(w)
}

// run is what a waiter does first when it has been woken: it records its pass.
func (g *Gate) run(w *waiter) error {
	if g.late != nil {
		g.late()
	}
	g.mu.Lock()
	if !w.released {
		g.mu.Unlock()
		return ErrClosed
	}
	g.released -= w.n
	g.pass(w.n, nanos())
	return nil
}

// giveUp removes a waiter whose context has ended from the queue, and gives its pass to those
// behind it, if it was released. But a start that comes no later than the deadline is in
// time: then giveUp returns nil, as it does for a gate that was closed.
func (g *Gate) giveUp(ctx context.Context, w *waiter) error {
	err := ctx.Err()
	late := errors.Is(err, context.DeadlineExceeded)
	g.mu.Lock()
	if late {
		g.release(nanos())
		g.mu.Lock()
	}
	switch {
	case w.released && late, g.closed && !w.released:
		g.mu.Unlock()
		return nil
	case w.released:
		g.released -= w.n
	case w != g.Head:
		g.remove(w)
		g.mu.Unlock()
		return err
	default:
		g.remove(w)
	}
	g.disarm() // the next may need fewer tokens and pass earlier
	g.release(nanos())
	return err
}

// release wakes the waiters that may pass, and unlocks the gate.
func (g *Gate) release(now int64) {
	first := g.takeReady(now)
	g.mu.Unlock()
	wake(first)
}

// wake wakes waiters that were cut from the queue, from the first on.
func wake(w *waiter) {
	for w != nil {
		next := w.Next
		w.Next = nil // or one that runs late would keep all behind it in memory
		close(w.ready)
		w = next
	}
}

// takeReady cuts the waiters that may pass from the queue, still linked to each other,
// and returns the first. It sets the timer for the next.
func (g *Gate) takeReady(now int64) (first *waiter) {
	g.forget(now, g.period)
	w := g.Head
	for ; w != nil && g.excess(w.n) <= 0; w = w.Next {
		g.count(w, -1)
		g.released += w.n
		w.released = true
	}
	first = g.cut(w)
	if w == nil {
		g.disarm()
	}
	g.arm(now)
	return first
}

// arm sets the timer for the first in the queue, unless it is set. It does not while the time is
// not known, because a pass on which it depends is not recorded: recording that arms.
func (g *Gate) arm(now int64) {
	if g.Head == nil || g.armed {
		return
	}
	switch excess := g.excess(g.Head.n); {
	case excess <= 0:
		g.setTimer(0)
	case excess <= g.used():
		g.setTimer(g.left(excess, now))
	}
}

func (g *Gate) setTimer(d time.Duration) {
	g.armed = true
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.expire)
		return
	}
	g.timer.Reset(d)
}

func (g *Gate) disarm() {
	if g.armed {
		g.armed = false
		g.timer.Stop()
	}
}

func (g *Gate) expire() {
	g.mu.Lock()
	g.armed = false
	g.release(nanos())
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
	wait := g.wait(nth-rounds*g.limit+g.excess(0), now)
	if hi != 0 || lo > uint64(headgate.Never-wait) {
		return headgate.Never
	}
	return time.Duration(lo) + wait
}

// wait is the time until the nth of the tokens used and released is forgotten, for an n of at
// most as many; 0 if n is not above 0.
func (g *Gate) wait(n, now int64) time.Duration {
	switch {
	case n <= 0:
		return 0
	case n <= g.used():
		return g.left(n, now)
	default:
		return time.Duration(g.period)
	}
}
