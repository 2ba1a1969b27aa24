package main

import (
	"context"
	"net/http"
	"time"

	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/middleware/stdlib"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	"github.com/ulule/limiter/v3/drivers/store/redis"
)

// ululeLimiter is the fixed window of ulule/limiter on one of its stores.
type ululeLimiter struct {
	l     *limiter.Limiter
	close func() error
}

func openUluleMemory(s Setup) (Contender, error) {
	return newUlule(newUluleMemory(), s.Terms, func() error { return nil }), nil
}

// newUluleMemory puts the cleaning of expired keys outside the run.
func newUluleMemory() limiter.Store {
	return memory.NewStoreWithOptions(limiter.StoreOptions{
		Prefix:          limiter.DefaultPrefix,
		CleanUpInterval: time.Hour,
	})
}

// ululeMiddleware is the net/http middleware of ulule/limiter.
func ululeMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	l := limiter.New(newUluleMemory(), limiter.Rate{Limit: s.Burst, Period: s.Period()})
	return stdlib.NewMiddleware(l).Handler(next), nil
}

func openUluleRedis(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	store, err := redis.NewStore(client)
	if err != nil {
		return nil, err
	}
	return newUlule(store, s.Terms, client.Close), nil
}

func newUlule(store limiter.Store, t Terms, closeStore func() error) Contender {
	return ululeLimiter{limiter.New(store, limiter.Rate{Limit: t.Burst, Period: t.Period()}), closeStore}
}

func (u ululeLimiter) Take(key string) (bool, error) {
	answer, err := u.l.Get(context.Background(), key)
	return !answer.Reached, err
}

func (u ululeLimiter) Close() error { return u.close() }
