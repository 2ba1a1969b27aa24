package main

import (
	"context"
	"errors"
	"net/http"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
)

// The contenders of this project, beside the plain limiter with a token bucket.
const (
	storeName       = "headgate, Memory alone"
	fixedWindowName = "headgate, fixed window"
	denyCacheName   = "headgate, deny cache"
	leaseName       = "headgate, lease"
)

func (t Terms) bucket() headgate.Limit { return headgate.Per(1, t.Every).Burst(t.Burst) }

// limiter is a Headgate limiter, with the client of its store if there is one.
type limiter struct {
	*headgate.Limiter

	close func() error
}

func (l limiter) Take(ctx context.Context, key string) (bool, error) {
	d, err := l.Allow(ctx, key)
	return d.Allowed(), err
}

func (l limiter) Close() error { return l.close() }

func openHeadgateMemory(s Setup) (Contender, error) {
	l, err := headgate.NewLimiter(headgate.NewMemorySize(s.Keys), s.bucket())
	return limiter{l, func() error { return nil }}, err
}

// memoryStore is the Memory store without a limiter.
type memoryStore struct {
	*headgate.Memory

	limit headgate.Limit
}

func openMemoryStore(s Setup) (Contender, error) {
	return memoryStore{headgate.NewMemorySize(s.Keys), s.bucket()}, nil
}

func (m memoryStore) Take(ctx context.Context, key string) (bool, error) {
	r := headgate.Request{Key: key, Limit: m.limit, Cost: 1}
	d, err := m.Memory.Take(ctx, r)
	return d.Allowed(), err
}

func headgateMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	l, err := headgate.NewLimiter(headgate.NewMemorySize(s.Keys+1), s.bucket())
	if err != nil {
		return nil, err
	}
	limit, err := httplimit.New(l, httplimit.Options{})
	if err != nil {
		return nil, err
	}
	return limit(next), nil
}

func openHeadgateRedis(s Setup) (Contender, error) { return openOnRedis(s, s.bucket(), nil) }

func openHeadgateWindow(s Setup) (Contender, error) {
	return openOnRedis(s, headgate.FixedWindow(s.Burst, s.Period()), nil)
}

func openDenyCache(s Setup) (Contender, error) {
	return openOnRedis(s, s.bucket(), func(store headgate.Store) (headgate.Store, error) {
		return denycache.New(store, 0)
	})
}

func openLease(s Setup) (Contender, error) {
	return openOnRedis(s, s.bucket(), func(store headgate.Store) (headgate.Store, error) {
		return lease.New(store, lease.Options{})
	})
}

// openOnRedis opens a limiter on Redis with the same client as the other contenders. A wrap that
// is not nil makes the store around that of Redis.
func openOnRedis(
	s Setup, l headgate.Limit, wrap func(headgate.Store) (headgate.Store, error),
) (Contender, error) {
	client := newGoRedis(s.Addr)
	inner, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		return nil, err
	}
	var store headgate.Store = inner
	if wrap != nil {
		if store, err = wrap(inner); err != nil {
			return nil, err
		}
	}
	made, err := headgate.NewLimiter(store, l)
	return limiter{made, func() error { return errors.Join(inner.Close(), client.Close()) }}, err
}

// newGoRedis is the client of every contender on go-redis: its defaults.
func newGoRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}
