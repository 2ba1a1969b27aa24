package main

import (
	"context"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
)

const autoPipelineName = "redis_rate, AutoPipeline"

// redisRate is GCRA of go-redis/redis_rate.
type redisRate struct {
	client *redis.Client
	l      *redis_rate.Limiter
	limit  redis_rate.Limit
}

func openRedisRate(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	return redisRate{client, redis_rate.NewLimiter(client), s.redisRateLimit()}, nil
}

// openRedisRateAutoPipeline opens redis_rate on the part of go-redis that sends what callers ask
// at the same time in one pipeline, with its defaults.
func openRedisRateAutoPipeline(s Setup) (Contender, error) {
	client := newGoRedis(s.Addr)
	pipeline, err := client.AutoPipeline()
	if err != nil {
		return nil, err
	}
	return redisRate{client, redis_rate.NewLimiter(pipeline), s.redisRateLimit()}, nil
}

func (t Terms) redisRateLimit() redis_rate.Limit {
	return redis_rate.Limit{Rate: 1, Period: t.Every, Burst: int(t.Burst)}
}

func (r redisRate) Take(ctx context.Context, key string) (bool, error) {
	answer, err := r.l.Allow(ctx, key, r.limit)
	if err != nil {
		return false, err
	}
	return answer.Allowed > 0, nil
}

// Close closes the pipelines as well.
func (r redisRate) Close() error { return r.client.Close() }
