package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redisscript"
)

var _ concurrency.Store = (*Store)(nil)

// permitScript is a script of its own, because each would slow the other down.
var permitScript = sync.OnceValue(func() redisscript.Script {
	return redisscript.New(file("permits"))
})

// AcquirePermit implements concurrency.Store in one round trip. If ctx ends before the answer, the
// permit is released in the background. If the answer is lost, the permit may be in use until it
// expires.
func (s *Store) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (concurrency.Decision, error) {
	a, err := s.awaitPermit(ctx, "acquire", r)
	if err != nil {
		return concurrency.Decision{}, err
	}
	retry := time.Duration(a[2]) * time.Microsecond
	return concurrency.Decision{Limit: r.Limit, InUse: a[1], RetryAfter: retry}, nil
}

// RenewPermit implements concurrency.Store in one round trip.
func (s *Store) RenewPermit(ctx context.Context, r concurrency.Request) (held bool, err error) {
	a, err := s.awaitPermit(ctx, "renew", r)
	return err == nil && a[0] == 1, err
}

// ReleasePermit implements concurrency.Store in one round trip. If the answer is lost, the permit
// may be in use until it expires.
func (s *Store) ReleasePermit(ctx context.Context, r concurrency.Request) (held bool, err error) {
	if err := ctx.Err(); err != nil && r.Validate() == nil {
		go func() { _, _ = s.callPermit(ctx, "release", r) }()
		return false, s.explain(err)
	}
	a, err := s.awaitPermit(ctx, "release", r)
	return err == nil && a[0] == 1, err
}

// WatchPermits implements concurrency.Store. While there are watchers, one more connection
// subscribes to a channel for each of their keys. The channel has the name of the key in Redis.
// With a redis.Ring, the connection receives the releases of one shard only. Watchers are also
// notified when the subscription begins, and after the connection was lost, because a release may
// have been missed. Behind a proxy, watchers are notified every 100 ms instead.
func (s *Store) WatchPermits(key string, wake chan<- struct{}) (stop func()) {
	if s.proxy {
		return everyInterval(wake)
	}
	return s.listener.watch(s.client, s.key(key, permitsID), wake)
}

// A caller that waits behind a proxy gets a released permit half of this later, on average.
const proxyInterval = 100 * time.Millisecond

// everyInterval sends to wake, without blocking, until stop is called.
func everyInterval(wake chan<- struct{}) (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		ticker := time.NewTicker(proxyInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				send(wake)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// awaitPermit is callPermit until ctx ends. A permit that is acquired after that is released.
func (s *Store) awaitPermit(
	ctx context.Context, op string, r concurrency.Request,
) ([]int64, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	var answer []int64
	var err error
	var settled atomic.Bool // by the answer or by the caller that leaves, whichever is first
	left := redisscript.Await(ctx, func() error {
		answer, err = s.callPermit(ctx, op, r)
		if !settled.CompareAndSwap(false, true) && op == "acquire" && err == nil && answer[0] == 1 {
			_, _ = s.callPermit(ctx, "release", r)
		}
		return nil
	})
	if settled.CompareAndSwap(false, true) {
		return nil, s.explain(left) // the call may still write to the others
	}
	return answer, s.explain(err)
}

// callPermit runs the script, and returns its three numbers. It does not end with ctx.
func (s *Store) callPermit(
	ctx context.Context, op string, r concurrency.Request,
) ([]int64, error) {
	id := r.ID[:]
	if r.ID == (concurrency.PermitID{}) {
		id = nil
	}
	ttl := r.TTL
	if op == "release" {
		ttl = r.After
	}
	key, ctx := s.key(r.Key, permitsID), context.WithoutCancel(ctx)
	answer, err := s.clock.Run(ctx, s.client, permitScript(), []string{key},
		func(now int64) []any {
			if !r.At.IsZero() {
				now = r.At.UnixMicro()
			}
			return []any{op, id, now, ttl.Microseconds(), r.Limit, r.Notify}
		})
	if err == nil && len(answer) != 3 {
		err = fmt.Errorf("script returned %d numbers for a permit, want 3", len(answer))
	}
	return answer, err
}
