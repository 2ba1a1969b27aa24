package concurrency

import (
	"context"
	"time"

	"github.com/headgate/headgate/internal/waitline"
)

// queue holds the callers that wait for one key in a Limiter. The first of the line asks the
// store; the others wait until they are first.
type queue struct {
	line waitline.Turnstile
	n    int64         // callers in the queue
	wake chan struct{} // a permit may be free: the first asks again
	stop func()        // ends the store's notifications
}

// Wait returns a permit of key as soon as one is free. Callers of one Limiter are served in the
// order in which they came. If several processes wait for a key, each has a line of its own; the
// order between processes is not kept.
//
// Wait returns the error of ctx if ctx ends first. It returns an error of the store, as Acquire
// does, and does not retry; then the next caller in line asks the store. While a store is
// unavailable all callers that wait fail, one after the other.
//
// Wait does not poll. The first in line asks again when the store reports that any process
// released a permit, or when enough permits have expired.
func (l *Limiter) Wait(ctx context.Context, key string) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.Waiting(key) == 0 {
		p, _, err := l.acquire(ctx, key, l.limit, false)
		if err != nil || p != nil {
			return p, err
		}
	}
	q := l.join(key)
	defer l.leave(key, q)
	if err := q.line.Enter(ctx); err != nil {
		return nil, err
	}
	defer q.line.Leave()
	return l.lead(ctx, key, q.wake)
}

// lead asks the store for the first in line until it gets a permit.
func (l *Limiter) lead(ctx context.Context, key string, wake <-chan struct{}) (*Permit, error) {
	for {
		p, d, err := l.acquire(ctx, key, l.limit, true)
		if err != nil || p != nil {
			return p, err
		}
		timer := time.NewTimer(d.RetryAfter)
		select {
		case <-wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// Waiting returns how many callers wait for key in this Limiter.
func (l *Limiter) Waiting(key string) int64 {
	if l.waiting.Load() == 0 {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if q := l.queues[key]; q != nil {
		return q.n
	}
	return 0
}

// join counts the caller in the queue of key.
func (l *Limiter) join(key string) *queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[key]
	if q == nil {
		q = &queue{wake: make(chan struct{}, 1)}
		q.stop = l.store.WatchPermits(key, q.wake)
		l.queues[key] = q
	}
	q.n++
	l.waiting.Add(1)
	return q
}

// leave ends what join began.
func (l *Limiter) leave(key string, q *queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q.n--
	l.waiting.Add(-1)
	if q.n == 0 {
		delete(l.queues, key)
		q.stop()
	}
}
