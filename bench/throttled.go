package main

import (
	"context"

	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"github.com/throttled/throttled/v2/store/memstore"
)

// throttledTries replaces the ten tries at a compare-and-swap after which
// throttled answers with an error: one hot key would be all errors.
const throttledTries = 1_000_000

// throttledLimiter is GCRA of throttled/throttled on one of its stores.
type throttledLimiter struct {
	l     *throttled.GCRARateLimiterCtx
	close func() error
}

// openThrottledMemory uses the store without bound, which is faster than its
// LRU.
func openThrottledMemory(s Setup) (Contender, error) {
	store, err := memstore.NewCtx(0)
	if err != nil {
		return nil, err
	}
	return newThrottled(store, s.Terms, func() error { return nil })
}

func openThrottledRedis(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	store, err := goredisstore.NewCtx(client, "throttled:")
	if err != nil {
		return nil, err
	}
	return newThrottled(store, s.Terms, client.Close)
}

func newThrottled(store throttled.GCRAStoreCtx, t Terms, closeStore func() error) (Contender, error) {
	quota := throttled.RateQuota{MaxRate: throttled.PerDuration(1, t.Every), MaxBurst: int(t.Burst - 1)}
	l, err := throttled.NewGCRARateLimiterCtx(store, quota)
	if err != nil {
		return nil, err
	}
	l.SetMaxCASAttemptsLimit(throttledTries)
	return throttledLimiter{l, closeStore}, nil
}

func (t throttledLimiter) Take(key string) (bool, error) {
	limited, _, err := t.l.RateLimitCtx(context.Background(), key, 1)
	return !limited, err
}

func (t throttledLimiter) Close() error { return t.close() }
