package headgate

import (
	"context"
	"slices"
	"time"
)

// flightQueue is who waits for flights of one key in this Concurrency, first come
// first. The first asks the store; the others wait until they are first.
type flightQueue struct {
	line []chan struct{} // each closed when its turn comes
	wake chan struct{}   // tells the first to ask again
	stop func()          // of the store's watching
}

// Wait begins a flight of key as soon as there is room for it: at once, or else first
// come first served among those who wait in this Concurrency. It returns ctx's error
// if that ends before; the turn is then that of the next one. Any other error is
// the store's, as told at [Concurrency.Acquire].
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
	q, turn := c.join(key)
	defer c.leave(key, q, turn)
	select {
	case <-turn:
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
		return int64(len(q.line))
	}
	return 0
}

// join puts the caller at the end of the line.
func (c *Concurrency) join(key string) (q *flightQueue, turn chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	turn = make(chan struct{})
	q = c.queues[key]
	if q == nil {
		q = &flightQueue{wake: make(chan struct{}, 1)}
		q.stop = c.store.WatchFlights(key, q.wake)
		c.queues[key] = q
		close(turn)
	}
	q.line = append(q.line, turn)
	c.waiting.Add(1)
	return q, turn
}

// leave takes the caller out of the line. Whoever is first then asks anew, so a wake
// that came for the one before is not lost.
func (c *Concurrency) leave(key string, q *flightQueue, turn chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(q.line, turn)
	q.line = slices.Delete(q.line, i, i+1)
	c.waiting.Add(-1)
	switch {
	case len(q.line) == 0:
		delete(c.queues, key)
		q.stop()
	case i == 0:
		close(q.line[0])
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
