package redisscript

import (
	"context"
	"errors"
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
	return Await(ctx, func() error {
		err := client.Process(ctx, cmd)
		lookAround(ctx, client, err)
		return err
	})
}

// lookAround lets the client of a Cluster ask who has which slots, behind the caller's
// back, if err is that a server did not answer. It does so by itself only for commands that it may
// send again, and else goes on for a minute to ask a primary that has been replaced.
func lookAround(ctx context.Context, client redis.UniversalClient, err error) {
	if _, answered := errors.AsType[redis.Error](err); err == nil || answered {
		return
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

// ErrExited is the error of a call that never returned, because a hook of the client ended its
// goroutine. What was asked for may have been done.
var ErrExited = errors.New("a hook of the client ended its goroutine (runtime.Goexit)")

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
	answered := make(chan answer, 1)
	go func() {
		a := answer{err: ErrExited}
		defer func() {
			a.panicked = recover()
			answered <- a
		}()
		a.err = call()
	}()
	select {
	case a := <-answered:
		if a.panicked != nil {
			panic(a.panicked) // a hook of the client: for the caller's goroutine to deal with
		}
		return a.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

type answer struct {
	err      error
	panicked any
}
