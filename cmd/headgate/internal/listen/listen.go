// Package listen opens listeners with bounds.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// The bounds of an HTTP server. A body has none here: a proxy passes streams.
const (
	headerTimeout  = 10 * time.Second
	idleTimeout    = 2 * time.Minute
	maxHeaderBytes = 64 << 10
	maxStreams     = 100 // of an HTTP/2 connection, the least that RFC 9113 recommends
)

// Bounds are the bounds of a listener.
type Bounds struct {
	Connections int // at a time; a further one replaces one that has been idle for long, or waits

	// Quiet is after how long without a byte a connection is idle, for servers that are not made by
	// Server, which says which of its connections are.
	Quiet time.Duration
}

// On opens a listener on address. Flag names what to change if the address cannot be used. An
// address that begins with unix: is the path of a socket; one that nobody serves any more is
// replaced.
func On(ctx context.Context, flag, address string, bounds Bounds) (*Listener, error) {
	network := "tcp"
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		network, address = "unix", path
		removeStale(ctx, path)
	}
	l, err := new(net.ListenConfig).Listen(ctx, network, address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf(
			"%s %s: the address is in use; choose another, or any free port with :0", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w; want host:port of this machine", flag, err)
	}
	return limit(l, bounds), nil
}

// removeStale removes a socket at path on which no process listens.
func removeStale(ctx context.Context, path string) {
	info, err := os.Lstat(path)
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return
	}
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		_ = c.Close()
		return
	}
	_ = os.Remove(path)
}

// Server returns an HTTP server that slow clients and huge headers do not hold up.
func Server(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           serving(h),
		ConnContext:       withConn,
		ConnState:         received,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
	}
}
