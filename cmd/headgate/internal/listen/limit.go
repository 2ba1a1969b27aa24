package listen

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Listener has at most so many connections at a time. While there are as many, a new one replaces
// one that has been idle for long, or waits until an HTTP answer has closed its own.
type Listener struct {
	net.Listener

	most  int
	quiet time.Duration // after which a connection that was read from is idle

	mu        sync.Mutex
	open      map[*conn]struct{}
	idle      []lastUse     // when it was looked through, in order
	lingering int           // connections that are being closed
	ended     chan struct{} // receives if a connection was closed
	full      atomic.Bool   // the last new connection found no free place
	silent    atomic.Int64  // connections that had no request yet, if the server says so

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
	for l.full.Store(l.Count() >= l.most); !l.add(c); {
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
		l.remove(idle)
		_ = idle.Conn.Close() // its server notices
	}
	c.use() // its server reads from it only now, however long it waited
	l.open[c] = struct{}{}
	l.silent.Add(1)
	return true
}

// remove makes the place of c free.
func (l *Listener) remove(c *conn) {
	if _, open := l.open[c]; open {
		delete(l.open, c)
		c.ask()
	}
}

// lastUse is when a connection was used.
type lastUse struct {
	*conn

	at int64
}

// idlest returns the connection that is idle longest, or nil if all are in use. All are looked
// through once for as many as are idle, so a flood costs little: what was used since comes later.
func (l *Listener) idlest(now time.Time) *conn {
	for range 2 {
		for len(l.idle) > 0 {
			c := l.idle[0]
			l.idle = l.idle[1:]
			if _, open := l.open[c.conn]; open && c.used.Load() == c.at && c.isIdle(now) {
				return c.conn
			}
		}
		l.idle = nil
		for c := range l.open {
			if c.isIdle(now) {
				l.idle = append(l.idle, lastUse{c, c.used.Load()})
			}
		}
		slices.SortFunc(l.idle, func(a, b lastUse) int { return cmp.Compare(a.at, b.at) })
	}
	return nil
}

// conn is a connection of a Listener.
type conn struct {
	net.Conn

	of      *Listener
	used    atomic.Int64 // when it was last read from or written to, in nanoseconds since 1970
	heard   atomic.Bool  // something was read from it
	asked   atomic.Bool  // it had a request, or is closed
	serving atomic.Int32 // requests that are being answered, if the server says so
	upload  atomic.Bool  // the last request has a body, of which a part may not be read yet
	closing atomic.Bool
}

// isIdle reports whether c can be closed without a loss.
func (c *conn) isIdle(now time.Time) bool {
	quiet := settle
	switch {
	case c.of.quiet > 0 && c.heard.Load():
		quiet = c.of.quiet
	case c.of.quiet > 0:
		quiet = greeting
	}
	return c.serving.Load() == 0 && c.used.Load()+int64(quiet) <= now.UnixNano()
}

// settle is how long a connection without a byte keeps its place. Its client may be sending a
// request, which would be lost: a busy program notices only later that the connection was closed.
const settle = time.Second

// greeting is settle for gRPC, whose clients send at once, and send a request that was lost again.
const greeting = 2 * retryInterval

// ask notes that c has a request, or is closed, and so is not silent any more. It reports whether
// it had one before.
func (c *conn) ask() (again bool) {
	if again = c.asked.Swap(true); !again {
		c.of.silent.Add(-1)
	}
	return again
}

// makesPlace reports whether an answer has to close its connection to make a place. In a flood of
// connections without a request it need not if its client has asked before: it keeps its place.
func (l *Listener) makesPlace(again bool) bool {
	return l.full.Load() && (!again || 2*int(l.silent.Load()) < l.most)
}

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
	if c.closing.Load() {
		return 0, net.ErrClosed
	}
	return n, err
}

// Write writes, and remembers when.
func (c *conn) Write(b []byte) (int, error) {
	c.use()
	return c.Conn.Write(b)
}

// Close closes the connection. A client that is sending a body gets to read its answer first.
func (c *conn) Close() error {
	if c.upload.Load() && c.lingers() {
		return nil
	}
	return c.end()
}

// end closes the connection and makes a place for another.
func (c *conn) end() error {
	c.of.mu.Lock()
	c.of.remove(c)
	c.of.mu.Unlock()
	select {
	case c.of.ended <- struct{}{}:
	default:
	}
	return c.Conn.Close()
}

// The bounds of what is read from clients that were answered before all of their bodies was there.
// If their connections were closed at once, they would be reset, and lose the answer.
const (
	maxLingering = 256 // connections of a listener
	lingerBytes  = 64 << 20
	lingerTime   = 30 * time.Second
	lingerIdle   = 2 * time.Second
)

// lingers reports whether c is being closed slowly.
func (c *conn) lingers() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if _, open := c.of.open[c]; !open || c.of.lingering >= maxLingering || c.closing.Load() {
		return c.closing.Load()
	}
	c.closing.Store(true)
	c.of.lingering++
	go c.linger()
	return true
}

// linger closes c for writing, and then drops what its client still sends. Meanwhile, another
// connection may replace it.
func (c *conn) linger() {
	if half, can := c.Conn.(interface{ CloseWrite() error }); can && half.CloseWrite() == nil {
		dropped, until := make([]byte, 16<<10), time.Now().Add(lingerTime)
		for left := lingerBytes; left > 0 && time.Now().Before(until); {
			_ = c.SetReadDeadline(time.Now().Add(lingerIdle))
			n, err := c.Conn.Read(dropped)
			if left -= n; err != nil {
				break
			}
		}
	}
	c.of.mu.Lock()
	c.of.lingering--
	c.of.mu.Unlock()
	_ = c.end()
}

type connKey struct{}

// connOf returns the conn below a connection of a server.
func connOf(c net.Conn) (*conn, bool) {
	if secure, is := c.(*tls.Conn); is {
		c = secure.NetConn()
	}
	of, is := c.(*conn)
	return of, is
}

// withConn puts the connection of a request into its context.
func withConn(ctx context.Context, c net.Conn) context.Context {
	of, _ := connOf(c)
	return context.WithValue(ctx, connKey{}, of)
}

// received notes that all of a request was read.
func received(c net.Conn, state http.ConnState) {
	if of, is := connOf(c); is && state == http.StateIdle {
		of.upload.Store(false)
	}
}

// serving marks the connections of requests to h as in use.
func serving(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, _ := r.Context().Value(connKey{}).(*conn); c != nil {
			again := c.ask()
			c.serving.Add(1)
			c.upload.Store(r.ContentLength != 0)
			if c.of.makesPlace(again) && r.Header.Get("Upgrade") == "" {
				w.Header().Set("Connection", "close")
			}
			defer func() {
				c.use() // the answer is not sent yet
				c.serving.Add(-1)
			}()
		}
		h.ServeHTTP(w, r)
	})
}
