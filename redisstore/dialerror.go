package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// dialErrors keeps the last error of a dial. A client dials several times, for longer than most
// callers wait: without it, the only error of a caller would be its deadline.
type dialErrors struct{ last atomic.Pointer[dialError] }

type dialError struct {
	err error
	at  time.Time
}

// dialErrorTTL is how long a dial error is kept. A dial that hangs takes the client's dial_timeout.
const dialErrorTTL = 30 * time.Second

// watch keeps the dial errors of client, which is the store's own.
func (d *dialErrors) watch(client redis.UniversalClient) {
	switch client := client.(type) {
	case *redis.Client:
		client.AddHook(d)
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(d) })
	}
}

// explain adds the last dial error to err, if err is that of a caller whose ctx has ended.
func (d *dialErrors) explain(ctx context.Context, err error) error {
	last := d.last.Load()
	if err == nil || last == nil || ctx.Err() == nil || time.Since(last.at) > dialErrorTTL {
		return err
	}
	return &unconnectedError{err, last.err}
}

// unconnectedError does not unwrap to the dial error, which may be of a later request.
type unconnectedError struct{ err, cause error }

func (e *unconnectedError) Unwrap() error { return e.err }

func (e *unconnectedError) Error() string {
	cause := strings.ReplaceAll(e.cause.Error(), "\n", " ")
	return e.err.Error() + "; the last dial failed: " + cause
}

// DialHook implements redis.Hook.
func (d *dialErrors) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			d.last.Store(nil)
			return conn, nil
		}
		d.last.Store(&dialError{withAddress(err, network, addr), time.Now()})
		return conn, err
	}
}

// withAddress adds the address to an error without one: a server without TLS waits for the end of
// what it takes for a request.
func withAddress(err error, network, addr string) error {
	if _, ok := errors.AsType[*net.OpError](err); !ok && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("dial %s %s: timed out; the server may not support TLS", network, addr)
	}
	return err
}

// ProcessHook implements redis.Hook. It does nothing.
func (d *dialErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook. It does nothing.
func (d *dialErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
