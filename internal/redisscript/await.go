package redisscript

import (
	"context"
	"errors"
	"reflect"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/internal/await"
)

// IsNil reports whether client is nil, or an interface around a nil pointer, as an unset variable
// of type *redis.Client is.
func IsNil(client redis.UniversalClient) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Process sends cmd and returns when it is answered or ctx ends. If ctx ends first, the command
// goes on in the background until the client's timeouts, and may be carried out. Nothing is sent
// for a context that has ended.
func Process(ctx context.Context, client redis.UniversalClient, cmd redis.Cmder) error {
	return Await(ctx, func() error {
		return process(ctx, client, cmd)
	})
}

// ErrExited is the error of a call that never returned, because a hook of the client ended its
// goroutine. The call may have been carried out.
var ErrExited = errors.New("a hook of the client ended its goroutine (runtime.Goexit)")

// Await runs call and returns its error, or that of ctx if ctx ends first.
// Then call goes on in the background; it is not begun if ctx has ended before. The clients of
// go-redis need it because they wait for answers whatever the context, or look at its deadline
// alone (ContextTimeoutEnabled). A panic of call becomes that of Await: a hook of the client may
// panic, and the caller deals with it.
func Await(ctx context.Context, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := ErrExited
	if await.Do(ctx, func() { err = call() }) {
		return ctx.Err()
	}
	return err
}
