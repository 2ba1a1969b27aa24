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

// TokenBucketConfig configures a [TokenBucket]. Zero values mean the defaults. If the values are
// invalid, every Allow returns an error.
type TokenBucketConfig struct {
	// Client is a *redis.Client or any other redis.UniversalClient, such as a
	// *redis.ClusterClient. Required; the caller closes it. Its timeouts apply to a call whose
	// context has no deadline. Its retries do not apply.
	Client redis.UniversalClient

	// Capacity is how many tokens a full bucket holds, which is the largest burst. Default: 10.
	Capacity int

	// RefillRate is how many tokens arrive each RefillInterval. It may be a fraction:
	// 0.5, or 1.0/3, which counts as exactly a third. Default: 1.
	RefillRate float64

	// RefillInterval is the time from one refill to the next, counted in whole
	// microseconds, rounded up. Default: 1 second. The bucket must fill within 142 years.
	RefillInterval time.Duration
}

// TokenBucket allows requests while the bucket of their key holds a token. It is safe for
// concurrent use. Make one with [NewTokenBucket].
type TokenBucket struct {
	client   redis.UniversalClient
	capacity int
	numbers  numbers
	fault    error // what is wrong with the configuration
	clock    redisscript.Clock
}

// NewTokenBucket makes a limiter. It does not connect, and does not fail: if cfg is invalid, every
// Allow returns a *headgate.InvalidError.
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

// Allow takes a token from the bucket of key. It returns whether there was one, and how many whole
// tokens remain. The bucket is the hash at exactly this key, also in a Cluster.
//
// With an error it returns false and 0. The error is a *headgate.InvalidError if the configuration
// is invalid; the error of ctx if that ends first, whatever the timeouts of the client; or else the
// error of the server or the connection, with the key. If the answer was lost, a token may have
// been taken, but never two: the script is sent again only if the server did not know it.
func (b *TokenBucket) Allow(ctx context.Context, key string) (bool, float64, error) {
	v, err := b.take(ctx, key)
	return v.allowed, float64(v.remaining), err
}

// verdict is the result of the script.
type verdict struct {
	allowed   bool
	remaining int64         // whole tokens
	retry     time.Duration // until a token is available, 0 if there was one
	full      time.Time     // when the bucket will be full
}

//go:embed token_bucket.lua
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

// advices are hints for errors of this script.
var advices = []redisscript.Advice{
	{Prefix: "NOPERM", Text: "the user needs the commands EVALSHA, EVAL, HMGET, HSET, EXISTS, " +
		"PEXPIRE, PTTL and TIME on this key"},
	{Prefix: "WRONGTYPE", Text: "the key holds a value of another type: choose another key"},
	{Prefix: "BADSTATE", Text: "choose another key, or delete this one"},
}

// read converts the four numbers that the script returns, or an error.
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
