package main

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

// newGoRedis is the client of every contender that uses go-redis: its
// defaults, so that all have the same pool.
func newGoRedis(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: addr})
}

// redisRate is GCRA of go-redis/redis_rate.
type redisRate struct {
	client *redis.Client
	l      *redis_rate.Limiter
	limit  redis_rate.Limit
}

func openRedisRate(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	limit := redis_rate.Limit{Rate: 1, Period: s.Every, Burst: int(s.Burst)}
	return redisRate{client, redis_rate.NewLimiter(client), limit}, nil
}

func (r redisRate) Take(key string) (bool, error) {
	answer, err := r.l.Allow(context.Background(), key, r.limit)
	if err != nil {
		return false, err
	}
	return answer.Allowed > 0, nil
}

func (r redisRate) Close() error { return r.client.Close() }
