package redisscript

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock decides whose time a script goes by: the server's, unless the server
// keeps TIME from scripts (an ACL, some proxies). A script that needs the time and
// cannot have it answers an error that begins with NOTIME, before it has decided
// anything. The zero Clock is ready, and safe for use by many goroutines.
type Clock struct{ refused atomic.Bool }

// Run runs s with the arguments for time 0, which stands for the server's clock.
// If that is refused, now and ever after, it runs s with those for this process's
// clock, in microseconds since the Unix epoch.
func (c *Clock) Run(ctx context.Context, client redis.UniversalClient, s Script, keys []string, args func(now int64) []any) ([]int64, error) {
	now := c.Now()
	numbers, err := s.Run(ctx, client, keys, args(now))
	if now == 0 && c.Refused(err) {
		return s.Run(ctx, client, keys, args(c.Now()))
	}
	return numbers, err
}

// Now is the time to give to a script: 0 for the server's, or this process's in
// microseconds since the Unix epoch.
func (c *Clock) Now() int64 {
	if c.refused.Load() {
		return time.Now().UnixMicro()
	}
	return 0
}

// Refused says whether err, the answer to a script that was given the time 0, is that it cannot
// have the server's. It is remembered.
func (c *Clock) Refused(err error) bool {
	if err == nil || !redis.HasErrorPrefix(err, "NOTIME") {
		return false
	}
	c.refused.Store(true)
	return true
}
