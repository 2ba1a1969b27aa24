package grpcserver

import (
	"net"
	"sync"
	"sync/atomic"
)

// connections are those that are open. grpc-go has no hold on a connection whose client has not
// sent its preface yet, and would wait for it when it stops.
type connections struct {
	mu   sync.Mutex
	open map[*connection]struct{}
}

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
	return c, nil
}

type connection struct {
	net.Conn
	connections *connections
	heard       atomic.Bool
}

// Read reads, and remembers that something came.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// Close closes the connection.
func (c *connection) Close() error {
	c.connections.mu.Lock()
	delete(c.connections.open, c)
	c.connections.mu.Unlock()
	return c.Conn.Close()
}
