package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	ulule "github.com/ulule/limiter/v3"
	ululeredis "github.com/ulule/limiter/v3/drivers/store/redis"
)

// ululeLimiter is the fixed window of ulule/limiter on Redis.
type ululeLimiter struct {
	l      *ulule.Limiter
	client *redis.Client
}

func openUlule(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	store, err := ululeredis.NewStore(client)
	if err != nil {
		return nil, err
	}
	rate := ulule.Rate{Limit: s.Burst, Period: s.Period()}
	return ululeLimiter{ulule.New(store, rate), client}, nil
}

func (u ululeLimiter) Take(ctx context.Context, key string) (bool, error) {
	answer, err := u.l.Get(ctx, key)
	return !answer.Reached, err
}

func (u ululeLimiter) Close() error { return u.client.Close() }
