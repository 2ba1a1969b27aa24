package listen

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Listener has at most so many connections at a time. While there are as many, a new one replaces
// one that has been idle for long. So a flood of idle connections keeps no client out.
type Listener struct {
	net.Listener

	most  int
	quiet time.Duration // after which a connection that was read from is idle

	mu    sync.Mutex
	open  map[*conn]struct{}
	ended chan struct{} // receives if a connection was closed

	closing sync.Once
	closed  chan struct{}
}

func limit(l net.Listener, bounds Bounds) *Listener {
	return &Listener{
		Listener: l, most: bounds.Connections, quiet: bounds.Quiet, open: map[*conn]struct{}{},
		ended: make(chan struct{}, 1), closed: make(chan struct{}),
	}
}

// Close ends Accept.
func (l *Listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Count returns the number of open connections.
func (l *Listener) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// CloseSilent closes the connections on which nothing was received.
func (l *Listener) CloseSilent() { l.closeThose(func(c *conn) bool { return !c.heard.Load() }) }

// CloseAll closes all connections.
func (l *Listener) CloseAll() { l.closeThose(func(*conn) bool { return true }) }

func (l *Listener) closeThose(which func(*conn) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		if which(c) {
			_ = c.Conn.Close() // its server notices
		}
	}
}

// retryInterval is how often connections are looked through while all of them are in use.
const retryInterval = 50 * time.Millisecond

// Accept waits for a connection, and for its place.
func (l *Listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: raw, of: l}
	for !l.add(c) {
		select {
		case <-l.ended:
		case <-time.After(retryInterval):
		case <-l.closed:
			_ = raw.Close()
			return nil, net.ErrClosed
		}
	}
	return c, nil
}

// add adds c if there is a place, or if it can make one.
func (l *Listener) add(c *conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) >= l.most {
		idle := l.idlest(time.Now())
		if idle == nil {
			return false
		}
		delete(l.open, idle)
		_ = idle.Conn.Close() // its server notices
	}
	c.use() // its server reads from it only now, however long it waited
	l.open[c] = struct{}{}
	return true
}

// sample is how many connections are compared: with all of them, a flood would cost much.
const sample = 16

// idlest returns the connection that is idle longest of some, or nil if all are in use.
func (l *Listener) idlest(now time.Time) (idlest *conn) {
	looked, longest := 0, now.UnixNano()
	for c := range l.open { // in random order
		if from := c.idleAt(now); from <= longest {
			idlest, longest = c, from
		}
		if looked++; looked >= sample && idlest != nil {
			break
		}
	}
	return idlest
}

// conn is a connection of a Listener.
type conn struct {
	net.Conn

	of      *Listener
	used    atomic.Int64 // when it was last read from or written to, in nanoseconds since 1970
	heard   atomic.Bool  // something was read from it
	serving atomic.Int32 // requests that are being answered, if the server says so
}

// idleAt returns from when on c can be closed without a loss, in nanoseconds since 1970.
func (c *conn) idleAt(now time.Time) int64 {
	quiet := settle
	if c.heard.Load() {
		quiet = max(quiet, c.of.quiet)
	}
	used := c.used.Load()
	if c.serving.Load() > 0 {
		used = now.UnixNano()
	}
	return used + int64(quiet)
}

// settle is how long a connection without a byte keeps its place: its server may not have read the
// request yet, or not have sent the answer.
const settle = 2 * retryInterval

func (c *conn) use() { c.used.Store(time.Now().UnixNano()) }

// Read reads, and remembers when.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.use()
		if !c.heard.Load() {
			c.heard.Store(true)
		}
	}
	return n, err
}

// Write writes, and remembers when.
func (c *conn) Write(b []byte) (int, error) {
	c.use()
	return c.Conn.Write(b)
}

// Close closes the connection and makes a place for another.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	select {
	case c.of.ended <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}

type connKey struct{}

// withConn puts the connection of a request into its context.
func withConn(ctx context.Context, c net.Conn) context.Context {
	if secure, ok := c.(*tls.Conn); ok {
		c = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, c)
}

// serving marks the connections of requests to h as in use.
func serving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			c.serving.Add(1)
			defer func() {
				c.use() // the answer is not sent yet
				c.serving.Add(-1)
			}()
		}
		h.ServeHTTP(w, r)
	})
}
