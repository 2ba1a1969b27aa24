//go:build gateways

package gateways

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// relay passes connections on to headgate, counts them, and can fail as a machine does.
type relay struct {
	address string
	to      string

	mu       sync.Mutex
	mode     mode
	listener net.Listener
	conns    []net.Conn
	accepted int
}

// mode is what a relay does.
type mode int

const (
	up   mode = iota
	down      // nothing listens
	hung      // connections are accepted, and nothing is answered
)

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	r := &relay{to: to}
	r.listen(t, freeAddress(t))
	r.address = r.listener.Addr().String()
	t.Cleanup(r.close)
	return r
}

// listen listens on address. A process that is being started at this moment has the listener that
// was there before for an instant more.
func (r *relay) listen(t *testing.T, address string) {
	t.Helper()
	until(t, "the relay listens", func() bool {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
		if err == nil {
			r.listener = l
			go r.serve(l)
		}
		return err == nil
	})
}

func (r *relay) serve(l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		r.pass(in)
	}
}

func (r *relay) pass(in net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.accepted++
	r.conns = append(r.conns, in)
	if r.mode == hung {
		return
	}
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", r.to)
	if err != nil {
		_ = in.Close()
		return
	}
	r.conns = append(r.conns, out)
	for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(ends[0], ends[1])
			_ = ends[0].Close()
		}()
	}
}

// answer makes r answer each request with a status, in the place of headgate.
func (r *relay) answer(t *testing.T, status int) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "no-store") // as headgate
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	r.mu.Lock()
	r.to = server.Listener.Addr().String()
	r.mu.Unlock()
	r.set(t, up)
}

// set changes the mode, and closes all connections.
func (r *relay) set(t *testing.T, m mode) {
	t.Helper()
	r.close()
	r.mu.Lock()
	r.mode = m
	r.mu.Unlock()
	if m != down {
		r.listen(t, r.address)
	}
}

func (r *relay) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.conns = nil
}

func (r *relay) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}
