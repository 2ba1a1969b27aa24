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

	mu     sync.Mutex
	ahead  time.Duration // of our own clock
	asked  time.Time
	passed bool // asked at least once
}

const day = 24 * time.Hour

// dayLimit is a limit whose only purpose is to say when the day of the store ends.
var dayLimit = headgate.FixedWindow(1<<40, day).Named("clock")

// at is the time of the store when ours was t.
func (c *storeClock) at(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return t.Add(c.ahead)
}

// adjust asks the store for its time, unless it was asked a moment ago.
func (c *storeClock) adjust(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := time.Now()
	if c.passed && from.Sub(c.asked) < 5*time.Second {
		return nil
	}
	d, err := c.store.Take(ctx, headgate.Request{Key: key, Limit: dayLimit, Cost: 1})
	if err != nil {
		return err
	}
	to := time.Now()
	c.ahead, c.asked, c.passed = ahead(from.Add(to.Sub(from)/2), d.ResetAfter), to, true
	return nil
}

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
