package concurrency

import (
	"context"
	"time"
)

// Wait returns a permit of key as soon as one is free. Callers of one Limiter are served in the
// order in which they came. If several processes wait for a key, each has a line of its own; the
// order between processes is not kept.
//
// Wait returns the error of ctx if ctx ends first. Like Acquire, it returns an error of the store
// and does not retry. The next caller in line then asks the store. So while the store is
// unavailable, all callers that wait fail, one after the other.
//
// Wait does not poll. The first caller in line asks again when the store reports that any process
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
	wake, leave, err := l.lines.Enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.lead(ctx, key, wake)
}

// lead asks the store for the first in line until it gets a permit.
func (l *Limiter) lead(ctx context.Context, key string, wake <-chan struct{}) (*Permit, error) {
	for {
		p, d, err := l.acquire(ctx, key, l.limit, true)
		if err != nil || p != nil {
			return p, err
		}
		select {
		case <-wake:
		case <-time.After(d.RetryAfter):
		case <-ctx.Done():
		}
	}
}

// Waiting returns how many callers wait for key in this Limiter.
func (l *Limiter) Waiting(key string) int64 { return l.lines.Callers(key) }
