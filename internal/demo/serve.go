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

	// patience is how long the store may take for all that one request asks.
	patience = 10 * time.Second

	// farewell is how long answers under way may take once ctx is done.
	farewell = 250 * time.Millisecond
)

// Address is the host and port at which a browser on this machine finds what is
// served at l.
func Address(l net.Listener) string {
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsUnspecified() {
		return l.Addr().String()
	}
	return net.JoinHostPort("localhost", strconv.Itoa(addr.Port))
}

// Serve answers at l until ctx is done, and then returns nil. It closes l. Requests
// under way are told to end, and cut off if they do not.
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
		_ = server.Close() // whoever is still there had its time
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// server waits for nobody for ever.
func (d *Demo) server(ctx context.Context) *http.Server {
	return &http.Server{
		Handler:           d,
		MaxHeaderBytes:    maxHeader,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      maxAhead + 4*patience, // to read, to ask the time, to decide, to look
		IdleTimeout:       time.Minute,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}
