// Package clock reads the time in microseconds, never backwards.
//
// If the clock of a caller or a server steps back, skew in internal/algorithm decides.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock reads the time in microseconds since the Unix epoch and never runs back.
// It reads only the monotonic clock, at half the cost of time.Now. About once a
// second it compares itself with the wall clock, and jumps ahead if that is ahead, as
// after a suspend or a correction; it never follows it back. Call Start before use.
type Clock struct {
	base   time.Time    // has a monotonic reading
	offset atomic.Int64 // microseconds to add to the time since base
	next   atomic.Int64 // when to compare with the wall clock: nanoseconds since base
}

// Start sets the clock to the wall clock.
func (c *Clock) Start() {
	c.base = time.Now()
	c.offset.Store(c.base.UnixMicro())
	c.next.Store(int64(time.Second))
}

// Micros returns the time in microseconds since the Unix epoch.
func (c *Clock) Micros() int64 {
	since := int64(time.Since(c.base))
	if since >= c.next.Load() {
		c.compare()
	}
	return c.offset.Load() + since/1000
}

// compare takes both clocks from one reading, so that no time passes between them.
func (c *Clock) compare() {
	now := time.Now()
	since := now.Sub(c.base)
	c.next.Store(int64(since + time.Second))
	offset := c.offset.Load()
	if wall := now.UnixMicro() - since.Microseconds(); wall > offset {
		c.offset.CompareAndSwap(offset, wall)
	}
}
