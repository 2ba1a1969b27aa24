package headgate

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/headgate/headgate/internal/waitline"
)

// queue holds those who wait at a [Gate], first come first.
type queue struct {
	waitline.List[waiter, *waiter]
	waiting int64 // how many tokens, each waiter counted for at most countMost
}

// countMost keeps the sum of any number of waiters exact.
const countMost = 1 << 32

// waiter is one who waits.
type waiter struct {
	waitline.Links[waiter]
	n     int64
	ready chan struct{} // closed when it may run: let go, or the gate was closed
	gone  bool          // let go
}

func (q *queue) push(w *waiter) {
	q.List.Push(w)
	q.count(w, 1)
}

func (q *queue) remove(w *waiter) {
	q.List.Remove(w)
	q.count(w, -1)
}

// cut takes those before w out, who stay linked, and returns the first of them.
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

func (q *queue) count(w *waiter, sign int64) { q.waiting += sign * min(w.n, countMost) }

// stand waits at the end of the queue for the turn of n tokens. The lock is held
// when it is called and free when it returns.
func (g *Gate) stand(ctx context.Context, n, now int64) error {
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
	g.release(now) // who waits has the time for it

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
	if !w.gone {
		g.mu.Unlock()
		return ErrClosed
	}
	g.flying -= w.n
	return g.pass(w.n, nanos())
}

// giveUp takes a waiter whose context has ended out of the queue, and gives its turn to
// those behind, if it has had it. But a turn that has come by a deadline is in time:
// then it returns nil, as it does for a gate that was closed.
func (g *Gate) giveUp(ctx context.Context, w *waiter) error {
	err := ctx.Err()
	late := errors.Is(err, context.DeadlineExceeded)
	g.mu.Lock()
	if late {
		g.release(nanos())
		g.mu.Lock()
	}
	switch {
	case w.gone && late, g.closed && !w.gone:
		g.mu.Unlock()
		return nil
	case w.gone:
		g.flying -= w.n
		w.gone = false
	case w != g.Head:
		g.remove(w)
		g.mu.Unlock()
		return err
	default:
		g.remove(w)
	}
	g.disarm() // the turn of who is behind may come earlier
	g.release(nanos())
	return err
}

// release wakes those whose turn has come, and nobody else. The lock is held when
// it is called and free when it returns.
func (g *Gate) release(now int64) {
	first := g.letGo(now)
	g.mu.Unlock()
	wake(first)
}

// wake wakes those who were taken out of the queue, from the first on.
func wake(w *waiter) {
	for w != nil {
		next := w.Next
		w.Next = nil // lest one that is woken late keeps all behind it in memory
		close(w.ready)
		w = next
	}
}

// letGo takes those whose turn has come out of the queue, still linked to each other,
// and returns the first. For the next it sets the timer.
func (g *Gate) letGo(now int64) (first *waiter) {
	g.forget(now, g.period)
	w := g.Head
	for ; w != nil && g.over(w.n) <= 0; w = w.Next {
		g.count(w, -1)
		g.flying += w.n
		w.gone = true
	}
	first = g.cut(w)
	if w == nil {
		g.disarm()
	}
	g.wind(now)
	return first
}

// wind sets the timer for the first who waits. It does not unless that is needed, and
// not while it is not known when that one's turn comes, because a pass that it depends on
// is not recorded: then whoever records that winds.
func (g *Gate) wind(now int64) {
	if g.Head == nil || g.armed {
		return
	}
	switch over := g.over(g.Head.n); {
	case over <= 0:
		g.arm(0)
	case over <= g.held():
		g.arm(g.left(over, now))
	}
}

// left is the time until the nth of the tokens held is forgotten.
func (g *Gate) left(n, now int64) time.Duration {
	return time.Duration(max(g.period-(now-g.passedAt(n)), 0))
}

func (g *Gate) arm(d time.Duration) {
	g.armed = true
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.turn)
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

// turn is what the timer does.
func (g *Gate) turn() {
	g.mu.Lock()
	g.armed = false
	g.release(nanos())
}

// forecast is the time until the turn of n tokens that come now, behind all who
// wait, if nobody gives up and everybody is woken on time; or [Never], if that is
// too long to tell. It is exact if all take one token. Else the turn may come later, because
// the tokens of one caller pass together; it never comes earlier.
func (g *Gate) forecast(n, now int64) time.Duration {
	// Tokens that wait go in steps of limit, each a period after those of the
	// step before it. Those of the first go when what is held is forgotten.
	nth := g.waiting + n
	rounds := (nth - 1) / g.limit
	return add(times(rounds, g.period), g.wait(nth-rounds*g.limit+g.over(0), now))
}

// wait is the time until the nth of the tokens held and flying is forgotten, n being
// at most as many; 0 if there is none such.
func (g *Gate) wait(n, now int64) time.Duration {
	switch {
	case n <= 0:
		return 0
	case n <= g.held():
		return g.left(n, now)
	default:
		return time.Duration(g.period)
	}
}

// add is a + b, and Never if that is too long.
func add(a, b time.Duration) time.Duration {
	if a > Never-b {
		return Never
	}
	return a + b
}

// times is n periods, and Never if that is too long.
func times(n, period int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(period))
	if hi != 0 || lo > uint64(Never) {
		return Never
	}
	return time.Duration(lo)
}
