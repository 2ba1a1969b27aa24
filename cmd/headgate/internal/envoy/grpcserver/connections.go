package grpcserver

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// connections are those that are open. grpc-go has no hold on a connection whose client has not
// sent its preface yet, and would wait for it when it stops.
type connections struct {
	mu    sync.Mutex
	open  map[*connection]struct{}
	count atomic.Int64 // of open
	held  atomic.Int64 // bytes of incomplete requests
}

// While incomplete requests hold more than maxHeld bytes in all, a connection that holds more than
// its share of maxHeld is closed. So all of them hold at most about twice as much.
const maxHeld = 32 << 20

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

	mu     sync.Mutex
	closed bool
	held   int64 // bytes of incomplete requests
}

// Read reads, and notes that something came.
func (c *connection) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && !c.heard.Load() {
		c.heard.Store(true)
	}
	return n, err
}

// hold adds n bytes, and reports whether the connection may hold what it holds then.
func (c *connection) hold(n int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.held += n
	all := c.connections.held.Add(n)
	return all <= maxHeld || c.held <= maxHeld/max(c.connections.count.Load(), 1)
}

// Close closes the connection.
func (c *connection) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		c.connections.mu.Lock()
		delete(c.connections.open, c)
		c.connections.mu.Unlock()
		c.connections.count.Add(-1)
		c.connections.held.Add(-c.held)
	}
	return c.Conn.Close()
}

// watching watches incomplete requests. It does so after the handshake, because only then are the
// frames of HTTP/2 in clear text.
type watching struct {
	credentials.TransportCredentials
	timeout time.Duration
}

// ServerHandshake returns a connection that is closed if its incomplete requests hold too much or
// take too long.
func (w watching) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, fmt.Errorf("grpc: handshake: %w", err)
	}
	of, ok := raw.(*connection)
	if !ok {
		return conn, info, nil
	}
	return &watched{Conn: conn, of: of, timeout: w.timeout, frames: newFrames()}, info, nil
}

type watched struct {
	net.Conn
	of      *connection
	timeout time.Duration
	frames  frames
	since   time.Time   // when the oldest incomplete request began
	late    *time.Timer // runs while there is one, and closes the connection
}

// Read reads, and notes what came.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if held := w.frames.read(b[:n], time.Now()); held != 0 && !w.of.hold(held) {
		return 0, errHolds
	}
	if since := w.frames.since(); since != w.since {
		w.since = since
		w.setTimer()
	}
	return n, err
}

func (w *watched) setTimer() {
	left := w.timeout - time.Since(w.since)
	switch {
	case w.since.IsZero():
		w.late.Stop()
	case w.late == nil:
		of := w.of // the timer does not keep the frames of a connection that has ended
		w.late = time.AfterFunc(left, func() { of.Close() })
	default:
		w.late.Reset(left)
	}
}
