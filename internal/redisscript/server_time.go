package redisscript

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Clock decides whose time a script uses: the server's, unless scripts may not call TIME there (an
// ACL, some proxies). A script that cannot have the time answers an error that begins with NOTIME,
// before it decides anything. The zero Clock is ready, and safe for use by many goroutines.
type Clock struct{ refused atomic.Bool }

// Run runs s with the arguments for time 0, which stands for the server's clock. If that is
// refused, then and ever after it runs s with the arguments for this process's clock, in
// microseconds since the Unix epoch.
func (c *Clock) Run(
	ctx context.Context, client redis.UniversalClient, s Script, keys []string,
	args func(now int64) []any,
) ([]int64, error) {
	now := c.Now()
	numbers, err := s.Run(ctx, client, keys, args(now))
	if now == 0 && c.Refused(err) {
		return s.Run(ctx, client, keys, args(c.Now()))
	}
	return numbers, err
}

// Now returns the time for a script: 0 for the server's clock, or microseconds since the Unix
// epoch.
func (c *Clock) Now() int64 {
	if c.refused.Load() {
		return time.Now().UnixMicro()
	}
	return 0
}

// Refused reports whether err, the answer to a script at time 0, is that it cannot have the
// server's time, and remembers that.
func (c *Clock) Refused(err error) bool {
	if err == nil || !redis.HasErrorPrefix(err, "NOTIME") {
		return false
	}
	c.refused.Store(true)
	return true
}
