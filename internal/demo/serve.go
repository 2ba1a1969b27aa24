package demo

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	// maxHeader bounds the header of a request; net/http answers 431 beyond it.
	maxHeader = 8 << 10

	// patience is how long the store may take for one request.
	patience = 10 * time.Second

	// farewell is how long responses may still take when ctx is done.
	farewell = 250 * time.Millisecond
)

// Address returns the host and port that a browser on this machine uses for l.
func Address(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(addr.Port))
}

// Serve serves on l until ctx is done, and then returns nil. It closes l, and waits for a moment
// for requests that are still running.
func (d *Demo) Serve(ctx context.Context, l net.Listener) error {
	server := d.server(ctx)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer stop()
	if err := server.Shutdown(ending); err != nil {
		_ = server.Close() // requests that are still running took too long
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server returns a server with all timeouts set.
func (d *Demo) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           d,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      maxAhead + 4*patience, // to read, to get the time, to decide, to peek
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}
