package httplimit

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// pauses of keys lie in a store, so that all who share it keep them. What is left of a
// pause, in microseconds, is what misses from a token bucket into which one token flows each
// microsecond: so it passes by itself, at the same moment for everybody.
type pauses struct{ store headgate.Store }

// longestPause is the most that a look sees.
const longestPause = 365 * 24 * time.Hour

// pauseLimit is the bucket in which a pause of at most d fits. Its state lies beside that of the
// user's limits, so its name is one that nobody would choose.
func pauseLimit(d time.Duration) headgate.Limit {
	return headgate.Per(1, time.Microsecond).Burst(d.Microseconds()).Named("httplimit.pause")
}

var lookAtPause = pauseLimit(longestPause)

// left is the time until the pause of key is over, 0 if there is none.
func (p pauses) left(ctx context.Context, key string) (time.Duration, error) {
	d, err := p.store.Take(ctx, headgate.Request{Key: key, Limit: lookAtPause})
	return d.ResetAfter, err
}

// prolong makes the pause of key last for d from now, unless it lasts longer already. It
// takes what misses to d out of a bucket that holds no more than d. If two do that at the
// same time, the bucket refuses one of them, which looks again: pauses never add up.
func (p pauses) prolong(ctx context.Context, key string, d time.Duration) error {
	d = min(d, longestPause).Round(time.Millisecond)
	for {
		left, err := p.left(ctx, key)
		if err != nil || left >= d {
			return err
		}
		granted, err := p.store.Take(ctx, headgate.Request{Key: key, Limit: pauseLimit(d), Cost: (d - left).Microseconds()})
		if err != nil || granted.Allowed() {
			return err
		}
	}
}
