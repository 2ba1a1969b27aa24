package grpcserver

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/peer"
)

// connections are those that are open. grpc-go has no hold on a connection whose client has not
// sent its preface yet, and would wait for it when it stops.
type connections struct {
	mu    sync.Mutex
	open  map[*connection]struct{}
	count atomic.Int64 // of open
	held  atomic.Int64 // bytes of requests that have no answer yet
}

// While requests without an answer hold more than maxHeld bytes in all, a connection that holds
// more than its share of maxHeld is closed. So all of them hold at most about twice as much.
const (
	maxHeld  = 32 << 20
	overhead = 512 // bytes of a request besides its message, at most
)

var errHolds = errors.New("grpc: incomplete requests hold too much memory; send whole requests")

// closeSilent closes the connections on which nothing was received.
func (c *connections) closeSilent() {
	c.close(func(one *connection) bool { return !one.heard.Load() })
}

func (c *connections) closeAll() {
	c.close(func(*connection) bool { return true })
}

func (c *connections) close(which func(*connection) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for one := range c.open {
		if which(one) {
			one.Conn.Close()
		}
	}
}

type listener struct {
	net.Listener
	connections *connections
}

// Accept waits for a connection.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: raw, connections: l.connections}
	c.connections.mu.Lock()
	defer c.connections.mu.Unlock()
	c.connections.open[c] = struct{}{}
	c.connections.count.Add(1)
	return c, nil
}

type connection struct {
	net.Conn
	connections *connections
	heard       atomic.Bool
	closed      atomic.Bool
	held        atomic.Int64 // bytes
}

// Read reads, and counts what came.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	if !c.heard.Load() {
		c.heard.Store(true)
	}
	if !c.hold(int64(n)) {
		return 0, errHolds
	}
	return n, err
}

// hold counts n bytes that were read, and reports whether the connection may hold them.
func (c *connection) hold(n int64) bool {
	mine, all := c.held.Add(n), c.connections.held.Add(n)
	if c.closed.Load() {
		c.release(n)
	}
	return all <= maxHeld || mine <= maxHeld/max(c.connections.count.Load(), 1)
}

// release subtracts n bytes, or all bytes that are held if they are fewer.
func (c *connection) release(n int64) {
	for {
		held := c.held.Load()
		if n = min(n, held); c.held.CompareAndSwap(held, held-n) {
			c.connections.held.Add(-n)
			return
		}
	}
}

// answered releases a request of n bytes.
func answered(ctx context.Context, n int) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(address); ok {
			a.of.release(int64(n) + overhead)
		}
	}
}

// address is the address of a peer, with its connection.
type address struct {
	net.Addr
	of *connection
}

// RemoteAddr returns an address.
func (c *connection) RemoteAddr() net.Addr { return address{c.Conn.RemoteAddr(), c} }

// Close closes the connection.
func (c *connection) Close() error {
	if !c.closed.Swap(true) {
		c.connections.mu.Lock()
		delete(c.connections.open, c)
		c.connections.mu.Unlock()
		c.connections.count.Add(-1)
		c.release(math.MaxInt64)
	}
	return c.Conn.Close()
}
