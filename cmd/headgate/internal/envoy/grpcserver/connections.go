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

// While incomplete requests hold more than maxHeld bytes in all, a connection that holds more than
// its share of maxHeld is closed. If none is added, all hold at most about twice as much.
const maxHeld = 32 << 20

var errHolds = errors.New("grpc: incomplete requests hold too much memory; send whole requests")

// watching watches incomplete requests. It does so after the handshake, because only then are the
// frames of HTTP/2 in clear text.
type watching struct {
	credentials.TransportCredentials
	timeout time.Duration
	count   func() int // of open connections
	held    *atomic.Int64
	refused func(net.Addr, mistake, error)
}

// ServerHandshake returns a connection that is closed if its incomplete requests hold too much or
// take too long.
func (w watching) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := w.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		w.refused(raw.RemoteAddr(), mistakeInHandshake(err), err)
		return nil, nil, fmt.Errorf("grpc: handshake: %w", err)
	}
	return &watched{Conn: conn, raw: raw, of: w, frames: newFrames()}, info, nil
}

type watched struct {
	net.Conn
	raw    net.Conn
	of     watching
	frames frames
	begun  bool        // the client has sent something
	since  time.Time   // when the oldest incomplete request began
	late   *time.Timer // runs while there is one, and closes the connection

	mu     sync.Mutex
	closed bool
	held   int64 // bytes of incomplete requests
}

// Read reads, and notes what came.
func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 && !w.begun {
		w.begun = true
		w.of.refused(w.RemoteAddr(), mistakeInPreface(b[:n]), nil)
	}
	if held := w.frames.read(b[:n], time.Now()); held != 0 && !w.hold(held) {
		return 0, errHolds
	}
	if since := w.frames.since(); since != w.since {
		w.since = since
		w.setTimer()
	}
	return n, err
}

func (w *watched) setTimer() {
	left := w.of.timeout - time.Since(w.since)
	switch {
	case w.since.IsZero():
		w.late.Stop()
	case w.late == nil:
		raw := w.raw // the timer does not keep the frames of a connection that has ended
		w.late = time.AfterFunc(left, func() { raw.Close() })
	default:
		w.late.Reset(left)
	}
}

// hold adds n bytes, and reports whether the connection may hold what it holds then.
func (w *watched) hold(n int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.held += n
	all := w.of.held.Add(n)
	return all <= maxHeld || w.held <= maxHeld/int64(max(w.of.count(), 1))
}

// Close closes the connection, which holds nothing any more.
func (w *watched) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.of.held.Add(-w.held)
	}
	return w.Conn.Close()
}
