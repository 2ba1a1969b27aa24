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

// dialErrors remembers for a while why the last connection could not be made, until one is: a client dials several
// times, for longer than most callers wait, who would hear of nothing but their deadlines.
type dialErrors struct{ failed atomic.Pointer[failure] }

type failure struct {
	err error
	at  time.Time
}

// remembered is for how long: while a server is gone, dials that hang take the client's dial_timeout.
const remembered = 30 * time.Second

// listen has client, which is a store's own, tell d of its dials.
func (d *dialErrors) listen(client redis.UniversalClient) {
	switch client := client.(type) {
	case *redis.Client:
		client.AddHook(d)
	case *redis.ClusterClient:
		client.OnNewNode(func(node *redis.Client) { node.AddHook(d) })
	}
}

// explain adds to err, the error of a caller whose ctx may have ended, why no connection could be made.
func (d *dialErrors) explain(ctx context.Context, err error) error {
	last := d.failed.Load()
	if err == nil || last == nil || ctx.Err() == nil || time.Since(last.at) > remembered {
		return err
	}
	return &unconnectedError{err, last.err}
}

// unconnectedError is not the error of the connection, which may be younger than the request.
type unconnectedError struct{ err, cause error }

func (e *unconnectedError) Unwrap() error { return e.err }

func (e *unconnectedError) Error() string {
	return e.err.Error() + "; the last connection could not be made: " + strings.ReplaceAll(e.cause.Error(), "\n", " ")
}

// DialHook implements redis.Hook.
func (d *dialErrors) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			d.failed.Store(nil)
			return conn, nil
		}
		d.failed.Store(&failure{why(err, network, addr), time.Now()})
		return conn, err
	}
}

// why says more than err where that names no address: a server that knows nothing of TLS waits
// for the end of what it takes for a request.
func why(err error, network, addr string) error {
	if _, named := errors.AsType[*net.OpError](err); !named && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("dial %s %s: no answer in time; if it was asked for TLS, it may have none", network, addr)
	}
	return err
}

// ProcessHook implements redis.Hook. It does nothing.
func (d *dialErrors) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook. It does nothing.
func (d *dialErrors) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
