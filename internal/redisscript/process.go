package redisscript

import (
	"context"
	"reflect"

	"github.com/redis/go-redis/v9"
)

// IsNil says whether client is nil, or an interface around a nil pointer, as a variable
// of type *redis.Client gives that nobody has set.
func IsNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Process sends cmd and waits for its answer or the end of ctx, whichever comes first.
// The command that nobody waits for any more ends by the client's timeouts; it may be
// carried out. Nothing is sent for a context that has ended.
func Process(ctx context.Context, client redis.UniversalClient, cmd redis.Cmder) error {
	return Await(ctx, func() error { return client.Process(ctx, cmd) })
}

// Await runs call, which is not begun if ctx has ended, and returns its error, or that
// of ctx if that ends before; then call goes on by itself. It is for calls of a client
// of go-redis, which waits for answers without a look at the context, or with one at its
// deadline alone (ContextTimeoutEnabled).
func Await(ctx context.Context, call func() error) error {
	if ctx.Done() == nil {
		return call()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	answered := make(chan error, 1)
	go func() { answered <- call() }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
