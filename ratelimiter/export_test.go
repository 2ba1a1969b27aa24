package ratelimiter

import (
	"context"
	"time"
)

// Verdict is what a test sees of the script's answer.
type Verdict struct {
	Allowed   bool
	Remaining int64
	Retry     time.Duration
	Full      time.Time
}

// TakeAt takes a token at a time of the test's choice, as of a server that keeps its own.
func (b *TokenBucket) TakeAt(ctx context.Context, key string, at time.Time) (Verdict, error) {
	answer, err := script.Run(ctx, b.client, []string{key}, b.numbers.arguments(at.UnixMicro()))
	v, err := read(key, answer, err)
	return Verdict{v.allowed, v.remaining, v.retry, v.full}, err
}
