package demo

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// storeClock tells the time of the store, which may be another machine's: the
// edges of windows are where the store sees them.
type storeClock struct {
	store headgate.Store

	mu     sync.Mutex // of the fields alone: nobody holds it while the store is asked
	ahead  time.Duration
	asked  time.Time // the last time that the store answered; zero before the first
	asking *question // that is under way, if any
}

// question is one question to the store, whose answer any number may wait for.
type question struct {
	done chan struct{} // closed when err is known
	err  error
}

const day = 24 * time.Hour

// stale is the age from which on the answer of the store is asked for again.
const stale = 5 * time.Second

// dayLimit is a limit whose only purpose is to say when the day of the store ends.
var dayLimit = headgate.FixedWindow(1<<40, day).Named("clock")

// at is the time of the store when ours was t.
func (c *storeClock) at(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.ahead)
}

// adjust asks the store for its time, unless it was asked a moment ago. While that
// question is under way, everybody else goes on with the answer before it, and
// waits only if there is none.
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

// pending is the question to wait for, or nil. Its answer serves others than who
// asked first, and so it does not end with that one's ctx.
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

// middle is the likeliest time of something that happened between from and to.
func middle(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 2) }

// ahead is by how much the clock of a store, whose day ends in rest, is ahead of
// ours at now; between half a day behind and half a day ahead.
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
