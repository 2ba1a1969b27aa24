package redisstore

import (
	"context"
	"errors"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// dials is a hook of a client that remembers why the last dial failed. A caller whose context ends
// before a connection is made would otherwise not know the cause.
type dials struct{ failed atomic.Pointer[error] } // nil: the last dial did not fail

// watch adds the hook to client, and to the clients of each node of a Cluster.
func (d *dials) watch(client redis.UniversalClient) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(d) })
		return
	}
	client.AddHook(d)
}

// DialHook implements redis.Hook.
func (d *dials) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		switch {
		case err == nil:
			d.failed.Store(nil)
		case ctx.Err() == nil:
			d.failed.Store(&err)
		}
		return conn, err
	}
}

// ProcessHook implements redis.Hook.
func (*dials) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// ProcessPipelineHook implements redis.Hook.
func (*dials) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// unconnected returns err with the reason why there is no connection, if err is that of a context
// and the last dial failed. Otherwise it returns nil.
func (s *Store) unconnected(err error) error {
	dial := s.dials.failed.Load()
	if dial == nil || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return nil
	}
	return &unconnectedError{err, *dial}
}

type unconnectedError struct{ err, dial error }

func (e *unconnectedError) Error() string {
	return e.err.Error() + "; no connection: " + e.dial.Error()
}

func (e *unconnectedError) Unwrap() error { return e.err }
