package headgate

import (
	"sync/atomic"
	"time"
)

// clock tells the time in microseconds since the Unix epoch and never runs back.
// It reads the monotonic clock alone, at half the cost of time.Now. About once a
// second it looks at the wall clock, and jumps ahead to it if that is ahead, as
// after a suspend or a correction; it never follows it back.
type clock struct {
	base  time.Time    // has a monotonic reading
	ahead atomic.Int64 // microseconds to add to the time since base
	next  atomic.Int64 // time since base, in nanoseconds, of the next look
}

func (c *clock) start() {
	c.base = time.Now()
	c.ahead.Store(c.base.UnixMicro())
	c.next.Store(int64(time.Second))
}

func (c *clock) micros() int64 {
	since := int64(time.Since(c.base))
	if since >= c.next.Load() {
		c.look()
	}
	return c.ahead.Load() + since/1000
}

// look takes both clocks from one reading, lest they be read apart.
func (c *clock) look() {
	now := time.Now()
	since := now.Sub(c.base)
	c.next.Store(int64(since + time.Second))
	ahead := c.ahead.Load()
	if wall := now.UnixMicro() - since.Microseconds(); wall > ahead {
		c.ahead.CompareAndSwap(ahead, wall)
	}
}
