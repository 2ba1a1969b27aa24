package main

import (
	"context"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislimiter"
)

// rueidisLimiter is the fixed window of rueidislimiter, whose client sends what callers ask at
// the same time in one pipeline. It has a counter and a time in Redis for each key.
type rueidisLimiter struct {
	l      rueidislimiter.RateLimiterClient
	client rueidis.Client
}

// openRueidisLimiter uses the defaults of the client, without the cache, which a limiter does not
// read from.
func openRueidisLimiter(s Setup) (Contender, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true,
	})
	if err != nil {
		return nil, err
	}
	l, err := rueidislimiter.NewRateLimiter(rueidislimiter.RateLimiterOption{
		ClientBuilder: func(rueidis.ClientOption) (rueidis.Client, error) { return client, nil },
		Limit:         int(s.Burst),
		Window:        s.Period(),
	})
	return rueidisLimiter{l, client}, err
}

func (r rueidisLimiter) Take(ctx context.Context, key string) (bool, error) {
	answer, err := r.l.Allow(ctx, key)
	return answer.Allowed, err
}

//nolint:unparam // the error is that of [io.Closer]
func (r rueidisLimiter) Close() error {
	r.client.Close()
	return nil
}
