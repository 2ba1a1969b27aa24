package demo

import (
	"context"
	"sync/atomic"
	"time"
)

// storeClock returns the time of the store, which may be on another machine. The edges of windows
// depend on it.
type storeClock struct {
	now   func(context.Context) (time.Time, error) // nil: the store has our clock
	ahead atomic.Int64                             // of our clock, in nanoseconds
}

// adjust requests the time of the store. Without an answer, it keeps the last offset: a store
// that has failed reports that when it decides, and a server may refuse to return its time.
func (c *storeClock) adjust(ctx context.Context) {
	if c.now == nil {
		return
	}
	from := time.Now()
	if now, err := c.now(ctx); err == nil {
		c.ahead.Store(int64(now.Sub(middle(from, time.Now()))))
	}
}

// offset returns how far the clock of the store is ahead of ours.
func (c *storeClock) offset() time.Duration { return time.Duration(c.ahead.Load()) }

// at returns the time of the store when ours was t.
func (c *storeClock) at(t time.Time) time.Time { return t.Add(c.offset()) }

// middle returns the likeliest time of an event between from and to.
func middle(from, to time.Time) time.Time { return from.Add(to.Sub(from) / 2) }
