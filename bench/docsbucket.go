package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// docsBucketScript decides as the token bucket of the Redis documentation's rate
// limiter guide does, in words of our own: on the same hash, with the caller's clock in
// seconds, one write for each decision and no expiry.
var docsBucketScript = redis.NewScript(`
local burst, amount, every, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local state = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill')
local tokens, since = tonumber(state[1]) or burst, tonumber(state[2]) or now
local ticks = math.floor((now - since) / every)
if ticks > 0 then
  tokens, since = math.min(burst, tokens + ticks * amount), since + ticks * every
end
local granted = 0
if tokens >= 1 then
  granted, tokens = 1, tokens - 1
end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'last_refill', since)
return {granted, tokens}
`)

// docsBucket stands in for the Go token bucket of the Redis documentation's rate
// limiter guide.
type docsBucket struct {
	client *redis.Client
	terms  Terms
}

func openDocsBucket(s Setup) (Contender, error) {
	return docsBucket{newGoRedis(s.Addr), s.Terms}, nil
}

func (d docsBucket) Take(key string) (bool, error) {
	now := float64(time.Now().UnixMicro()) / 1e6
	answer, err := docsBucketScript.Run(context.Background(), d.client, []string{key},
		d.terms.Burst, 1.0, d.terms.Every.Seconds(), now).Int64Slice()
	if err != nil {
		return false, err
	}
	return answer[0] == 1, nil
}

func (d docsBucket) Close() error { return d.client.Close() }
