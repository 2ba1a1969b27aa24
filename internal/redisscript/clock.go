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
	if !c.refused.Load() {
		numbers, err := s.Run(ctx, client, keys, args(0))
		if !redis.HasErrorPrefix(err, "NOTIME") {
			return numbers, err
		}
		c.refused.Store(true)
	}
	return s.Run(ctx, client, keys, args(time.Now().UnixMicro()))
}
