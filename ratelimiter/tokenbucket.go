package ratelimiter

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/redisscript"
	"github.com/redis/go-redis/v9"
)

// TokenBucketConfig says how a [TokenBucket] counts. Zero values stand for the
// defaults; what cannot be counted is an error of every Allow.
type TokenBucketConfig struct {
	// Client is the way to Redis: a *redis.Client or any other redis.UniversalClient,
	// such as a *redis.ClusterClient. Required; it remains the caller's to close. Its
	// timeouts bound a call whose context has no deadline. Its retries do not apply.
	Client redis.UniversalClient

	// Capacity is how many tokens a full bucket holds, and so the largest burst.
	// Default: 10.
	Capacity int

	// RefillRate is how many tokens arrive each RefillInterval. It may be a fraction:
	// 0.5, or 1.0/3, which is counted as a third exactly. Default: 1.
	RefillRate float64

	// RefillInterval is the time from one refill to the next, counted in whole
	// microseconds (a part of one is rounded up). Default: 1 second. The bucket must
	// fill within 142 years.
	RefillInterval time.Duration
}

// TokenBucket lets requests through while the bucket of their key holds a token. It
// is safe for use by many goroutines. Make one with [NewTokenBucket].
type TokenBucket struct {
	client   redis.UniversalClient
	capacity int
	numbers  numbers
	fault    error // what is wrong with the configuration
	clock    redisscript.Clock
}

// NewTokenBucket makes a limiter. It does not connect, and does not fail: if cfg cannot
// be used, every Allow returns a *headgate.InvalidError that says why.
func NewTokenBucket(cfg TokenBucketConfig) *TokenBucket {
	if cfg.Capacity == 0 {
		cfg.Capacity = 10
	}
	if cfg.RefillRate == 0 {
		cfg.RefillRate = 1
	}
	if cfg.RefillInterval == 0 {
		cfg.RefillInterval = time.Second
	}
	b := &TokenBucket{client: cfg.Client, capacity: cfg.Capacity}
	b.numbers, b.fault = count(cfg)
	if redisscript.IsNil(cfg.Client) {
		b.fault = invalid("Client", "nil", "a go-redis client")
	}
	return b
}

// Allow takes a token from the bucket of key, and says whether there was one and how
// many whole tokens remain. The bucket is the hash at exactly this key, in one server
// of a Cluster.
//
// An error means that nobody could say, and comes with false and 0. It is a
// *headgate.InvalidError if the configuration is at fault; the context's error if ctx
// ended first, at once, whatever the timeouts of the client; else what the server or the
// way to it said, with the key. A token may have been taken if the answer was lost on its
// way, but never two: nothing is sent again but to a server that had not known the script.
func (b *TokenBucket) Allow(ctx context.Context, key string) (bool, float64, error) {
	v, err := b.take(ctx, key)
	return v.allowed, float64(v.remaining), err
}

// verdict is what the script says.
type verdict struct {
	allowed   bool
	remaining int64         // whole tokens
	retry     time.Duration // until a token is there, 0 if there was one
	full      time.Time     // when the bucket will be
}

//go:embed tokenbucket.lua
var text string

var script = redisscript.New(text)

func (b *TokenBucket) take(ctx context.Context, key string) (verdict, error) {
	switch {
	case b == nil || b.client == nil && b.fault == nil:
		return verdict{}, invalid("TokenBucket", "not set up", "one that NewTokenBucket made")
	case b.fault != nil:
		return verdict{}, b.fault
	}
	answer, err := b.clock.Run(ctx, b.client, script, []string{key}, b.numbers.arguments)
	return read(key, answer, err)
}

// arguments are the ARGV of the script.
func (n numbers) arguments(now int64) []any {
	return []any{now, n.full, n.unit, n.amount, n.interval, n.life}
}

// advices are what helps a bucket against errors that other scripts may not meet.
var advices = []redisscript.Advice{
	{Prefix: "NOPERM", Text: "the user needs the commands EVALSHA, EVAL, HMGET, HSET, EXISTS, PEXPIRE, PTTL and TIME on this key"},
	{Prefix: "WRONGTYPE", Text: "somebody else's value is at the key: choose another key"},
	{Prefix: "BADSTATE", Text: "choose another key, or delete this one"},
}

// read turns the four numbers that the script returns, or an error, into a verdict.
func read(key string, answer []int64, err error) (verdict, error) {
	who := "ratelimiter: key " + strconv.Quote(key)
	if err != nil {
		return verdict{}, redisscript.Explain(who, err, advices)
	}
	if len(answer) != 4 {
		return verdict{}, fmt.Errorf("%s: the script returned %d numbers, not 4", who, len(answer))
	}
	return verdict{
		allowed:   answer[0] == 1,
		remaining: answer[1],
		retry:     time.Duration(answer[2]) * time.Microsecond,
		full:      time.UnixMicro(answer[3]),
	}, nil
}
