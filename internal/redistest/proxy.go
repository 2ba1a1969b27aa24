package redistest

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy passes TCP connections on to a server, and fails as its settings say.
type Proxy struct {
	Addr string // host:port to connect to

	server   string
	listener net.Listener
	closed   chan struct{}
	fault    atomic.Pointer[proxyFault] // nil: none
	answers  atomic.Int64
	failed   atomic.Int64
	wg       sync.WaitGroup
}

// proxyFault is what happens to the answers of the server.
type proxyFault struct {
	every   int64         // of so many answers, counted over all connections, one is hit
	late    time.Duration // it comes so much later
	cut     bool          // half of it comes, then the connection ends
	swallow bool          // it never comes, and nothing after it
}

// StartProxy starts a proxy to the server at addr that ends with the test.
func StartProxy(tb testing.TB, addr string) *Proxy {
	tb.Helper()
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "tcp",
		net.JoinHostPort(loopback, "0"))
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{Addr: listener.Addr().String(), server: addr, listener: listener,
		closed: make(chan struct{})}
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		close(p.closed)
		_ = listener.Close()
		p.wg.Wait()
	})
	return p
}

// Delay lets answers come late from now on.
func (p *Proxy) Delay(late time.Duration) { p.fault.Store(&proxyFault{every: 1, late: late}) }

// Cut ends a connection in the middle of an answer, for one in so many answers.
func (p *Proxy) Cut(every int64) { p.fault.Store(&proxyFault{every: every, cut: true}) }

// Swallow lets answers vanish, and with them whatever comes after on their connection,
// which stays open.
func (p *Proxy) Swallow() { p.fault.Store(&proxyFault{every: 1, swallow: true}) }

// Heal ends the fault. Connections that have lost something end when more comes.
func (p *Proxy) Heal() { p.fault.Store(nil) }

// Failed is how many answers a fault has hit.
func (p *Proxy) Failed() int64 { return p.failed.Load() }

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(client) })
	}
}

// serve passes one connection on, until one of its ends is closed.
func (p *Proxy) serve(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.server, time.Second) //nolint:noctx // it ends by itself
	if err != nil {
		return
	}
	var ends sync.WaitGroup
	ended := make(chan struct{})
	end := sync.OnceFunc(func() {
		close(ended)
		_ = client.Close()
		_ = server.Close()
	})
	ends.Go(func() { defer end(); p.requests(client, server) })
	ends.Go(func() { defer end(); p.replies(client, server, ended) })
	select {
	case <-ended:
	case <-p.closed:
		end()
	}
	ends.Wait()
}

func (p *Proxy) requests(client, server net.Conn) {
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if err != nil {
			return
		}
		if _, err := server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// replies passes on what the server answers, until a fault ends it.
func (p *Proxy) replies(client, server net.Conn, ended <-chan struct{}) {
	buf, lost := make([]byte, 1<<16), false
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		fault := p.fault.Load()
		hit := fault != nil && p.answers.Add(1)%fault.every == 0
		if hit {
			p.failed.Add(1)
		}
		switch {
		case lost && fault == nil:
			return
		case lost || hit && fault.swallow:
			lost = true
			continue
		case hit && fault.cut:
			_, _ = client.Write(buf[:n/2])
			return
		case hit && fault.late > 0:
			select {
			case <-time.After(fault.late):
			case <-ended:
				return
			}
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}
