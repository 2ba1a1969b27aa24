package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
)

// throttledLimiter is GCRA of throttled/throttled on Redis.
type throttledLimiter struct {
	l      *throttled.GCRARateLimiterCtx
	client *redis.Client
}

func openThrottled(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{
		MaxRate: throttled.PerDuration(1, s.Every), MaxBurst: int(s.Burst - 1),
	})
	if err != nil {
		return nil, err
	}
	// By default it returns an error after ten lost compare-and-swaps.
	l.SetMaxCASAttemptsLimit(1_000_000)
	return throttledLimiter{l, client}, nil
}

func (t throttledLimiter) Take(ctx context.Context, key string) (bool, error) {
	limited, _, err := t.l.RateLimitCtx(ctx, key, 1)
	return !limited, err
}

func (t throttledLimiter) Close() error { return t.client.Close() }
