package demo

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// storeClock returns the time of the store, which may be another machine's. The edges of windows
// depend on it.
type storeClock struct {
	store headgate.Store

	mu     sync.Mutex // of the fields; not held during a call of the store
	ahead  time.Duration
	asked  time.Time // when the store responded last; zero before the first time
	asking *question // the pending question, if any
}

// question is a call of the store that many callers may wait for.
type question struct {
	done chan struct{} // closed when err is known
	err  error
}

const day = 24 * time.Hour

// stale is the age at which the answer of the store is requested again.
const stale = 5 * time.Second

// dayLimit is a limit whose ResetAfter is the time to the end of the store's day.
var dayLimit = headgate.FixedWindow(1<<40, day).Named("clock")

// offset returns how far the clock of the store is ahead of ours.
func (c *storeClock) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// at returns the time of the store when ours was t.
func (c *storeClock) at(t time.Time) time.Time { return t.Add(c.offset()) }

// adjust requests the time of the store, unless it is known from a moment ago. During the request,
// other callers use the answer before it, and wait only if there is none.
func (c *storeClock) adjust(ctx context.Context) error {
	q := c.pending(ctx)
	if q == nil {
		return nil
	}
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pending returns the question to wait for, or nil. Several callers wait for its answer, so it does
// not end with the ctx of the first.
func (c *storeClock) pending(ctx context.Context) *question {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch known := !c.asked.IsZero(); {
	case known && time.Since(c.asked) < stale:
		return nil
	case c.asking != nil && known:
		return nil
	case c.asking == nil:
		c.asking = &question{done: make(chan struct{})}
		go c.ask(context.WithoutCancel(ctx), c.asking)
	}
	return c.asking
}

func (c *storeClock) ask(ctx context.Context, q *question) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	from := time.Now()
	d, err := c.store.Take(ctx, headgate.Request{Key: key, Limit: dayLimit, Cost: 1})
	to := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.ahead, c.asked = ahead(middle(from, to), d.ResetAfter), to
	}
	q.err, c.asking = err, nil
	close(q.done)
}

// middle returns the likeliest time of an event between from and to.
func middle(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 2) }

// ahead returns how far the clock of a store, whose day ends in rest, is ahead of ours at now: from
// half a day behind to half a day ahead.
func ahead(now time.Time, rest time.Duration) time.Duration {
	ours := time.Duration(now.UnixMicro()%day.Microseconds()) * time.Microsecond
	ahead := day - rest - ours
	switch {
	case ahead > day/2:
		ahead -= day
	case ahead < -day/2:
		ahead += day
	}
	return ahead
}
