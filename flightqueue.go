package headgate

import (
	"context"
	"time"

	"github.com/headgate/headgate/internal/waitline"
)

// flightQueue is who waits for flights of one key in this Concurrency, first come
// first. The first asks the store; the others wait until they are first.
type flightQueue struct {
	waitline.List[flightWaiter, *flightWaiter]
	n    int64         // how many there are
	wake chan struct{} // tells the first to ask again
	stop func()        // of the store's watching
}

// flightWaiter is one of a line.
type flightWaiter struct {
	waitline.Links[flightWaiter]
	turn chan struct{} // closed when its turn comes
}

// Wait begins a flight of key as soon as there is room for it: at once, or else first
// come first served among those who wait in this Concurrency. It returns ctx's error
// if that ends before; the turn is then that of the next one. Any other error is
// the store's, as told at [Concurrency.Acquire].
//
// What an error of the store means is for each caller to decide, so Wait returns the first
// that it gets, and does not ask again. Then the next in line asks, and the one after it: a
// store that is gone for a moment fails all who wait in that moment, one after the other.
// Who wants to outlast that calls Wait again, after a pause, and is last in line then.
//
// Nobody polls: who is first in line asks again when the store tells that a flight was
// given back, by any process that shares it, or when so many leases have ended that
// there is room. If several processes wait for a key, each has a line of its own, and
// the first of a line whose question comes first gets the room.
func (c *Concurrency) Wait(ctx context.Context, key string) (*Flight, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Waiting(key) == 0 {
		f, _, err := c.ask(ctx, key, c.n.Load(), false)
		if err != nil || f != nil {
			return f, err
		}
	}
	q, w := c.join(key)
	defer c.leave(key, q, w)
	select {
	case <-w.turn:
		return c.lead(ctx, key, q.wake)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// lead asks for who is first in line until there is room.
func (c *Concurrency) lead(ctx context.Context, key string, wake <-chan struct{}) (*Flight, error) {
	for {
		f, d, err := c.ask(ctx, key, c.n.Load(), true)
		if err != nil || f != nil {
			return f, err
		}
		timer := time.NewTimer(d.RetryAfter)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// Waiting tells how many wait for key in this Concurrency.
func (c *Concurrency) Waiting(key string) int64 {
	if c.waiting.Load() == 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if q := c.queues[key]; q != nil {
		return q.n
	}
	return 0
}

// join puts the caller at the end of the line.
func (c *Concurrency) join(key string) (*flightQueue, *flightWaiter) {
	w := &flightWaiter{turn: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.queues[key]
	if q == nil {
		q = &flightQueue{wake: make(chan struct{}, 1)}
		q.stop = c.store.WatchFlights(key, q.wake)
		c.queues[key] = q
		close(w.turn)
	}
	q.Push(w)
	q.n++
	c.waiting.Add(1)
	return q, w
}

// leave takes the caller out of the line. Whoever is first then asks anew, so a wake
// that came for the one before is not lost.
func (c *Concurrency) leave(key string, q *flightQueue, w *flightWaiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wasFirst := q.Head == w
	q.Remove(w)
	q.n--
	c.waiting.Add(-1)
	switch {
	case q.n == 0:
		delete(c.queues, key)
		q.stop()
	case wasFirst:
		close(q.Head.turn)
	}
}

// wakeAll lets the first of each line ask again.
func (c *Concurrency) wakeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		send(q.wake)
	}
}
