package listen

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func open(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func get(t *testing.T, c net.Conn, path string) string {
	t.Helper()
	if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: a\r\n\r\n"); err != nil {
		return err.Error()
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return string(b)
}

func closed(c net.Conn) bool {
	_, err := c.Read(make([]byte, 1))
	return errors.Is(err, io.EOF)
}

// If more clients come than there are places, they wait, and no request is lost: even if a client
// sends it late, waits for its place for long, or gets its answer late, and on whichever connection
// it may send it.
func TestMoreClientsThanPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			time.Sleep(3 * settle)
		}))
		go func() { _ = server.Serve(limit(l, Bounds{Connections: 10})) }()
		defer server.Close() // once l is closed
		defer close(l)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				var c net.Conn
				for range 20 {
					if c == nil {
						var end net.Conn
						c, end = net.Pipe()
						l <- end
					}
					time.Sleep(time.Duration(i) * time.Second / 40)
					_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
					r, err := http.ReadResponse(bufio.NewReader(c), nil)
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					if _ = r.Body.Close(); r.Close {
						_ = c.Close()
						c = nil
					}
				}
				if c != nil {
					_ = c.Close()
				}
			})
		}
		all.Wait()
	})
}

// A connection whose request is being answered keeps its place. The others lose theirs, the one
// that is idle longest first.
func TestANewConnectionReplacesAnIdleOne(t *testing.T) {
	t.Parallel()
	l, err := On(context.Background(), "--http", "127.0.0.1:0", Bounds{Connections: 3})
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	server := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(asked)
			<-answer
		}
		_, _ = io.WriteString(w, r.URL.Path) //nolint:gosec // a test
	}))
	go func() { _ = server.Serve(l) }()
	defer server.Close()

	slow := open(t, l)
	got := make(chan string, 1)
	go func() { got <- get(t, slow, "/slow") }()
	<-asked
	first := open(t, l)
	if text := get(t, first, "/1"); text != "/1" {
		t.Fatal(text)
	}
	second := open(t, l)
	if text := get(t, second, "/2"); text != "/2" {
		t.Fatal(text)
	}
	if text := get(t, open(t, l), "/3"); text != "/3" || !closed(first) {
		t.Errorf("%q; want the first connection replaced by a third", text)
	}
	if text := get(t, second, "/2"); text != "/2" {
		t.Errorf("the second connection: %q", text)
	}
	close(answer)
	if text := <-got; text != "/slow" {
		t.Errorf("the connection in use: %q", text)
	}
}

// In a flood of connections without a request, a client that asked before keeps its connection, also
// while new ones wait.
func TestSilentConnectionsEndNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := make(pipes)
		server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		go func() { _ = server.Serve(limit(l, Bounds{Connections: 3})) }()
		defer server.Close() // once l is closed
		defer close(l)
		var all sync.WaitGroup
		defer all.Wait()
		client, end := net.Pipe()
		defer client.Close()
		l <- end
		for i := range 10 {
			for _, text := range []string{"", "GET / HTTP/1.1\r\nX-"} {
				if i == 0 {
					break // the client comes first
				}
				all.Go(func() {
					silent, end := net.Pipe()
					l <- end
					_, _ = io.WriteString(silent, text)
				})
			}
			time.Sleep(settle / 2)
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
			r, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _ = r.Body.Close(); r.Close {
				t.Fatal("the answer closes the connection")
			}
		}
	})
}

// A client of gRPC sends at once, so a connection without a byte keeps its place for no second.
func TestSilentConnectionsOfGRPC(t *testing.T) {
	now := time.Now()
	l := &Listener{quiet: time.Hour, open: map[*conn]struct{}{}}
	for _, heard := range []bool{true, false} {
		c := &conn{of: l}
		c.used.Store(now.UnixNano())
		c.heard.Store(heard)
		if c.isIdle(now.Add(greeting)) == heard || c.isIdle(now.Add(greeting/2)) {
			t.Errorf("heard %v: it does not keep its place as it should", heard)
		}
	}
}

// Idle connections of one client end no connection of another before there are as many as there may
// be.
func TestConnectionsStayIfThereAreMany(t *testing.T) {
	t.Parallel()
	l, err := On(context.Background(), "--http", "127.0.0.1:0", Bounds{Connections: 8})
	if err != nil {
		t.Fatal(err)
	}
	server := Server(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	for i := range 8 {
		c := open(t, l)
		_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _ = r.Body.Close(); r.Close {
			t.Errorf("connection %d ends", i)
		}
	}
}

// While all connections are in use, a new one waits for one to end, or for the end of the listener.
func TestANewConnectionWaitsForOneInUse(t *testing.T) {
	t.Parallel()
	l, err := On(context.Background(), "--grpc", "127.0.0.1:0",
		Bounds{Connections: 1, Quiet: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accepted, ended := make(chan net.Conn), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	first := open(t, l)
	if _, err := io.WriteString(first, "a"); err != nil {
		t.Fatal(err)
	}
	used := <-accepted
	if _, err := used.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	second := open(t, l)
	select {
	case <-accepted:
		t.Fatal("a connection was accepted beyond the bound")
	case <-time.After(3 * retryInterval):
	}
	_ = used.Close()
	used = <-accepted
	if _, err := io.WriteString(second, "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := used.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	open(t, l) // waits
	_ = l.Close()
	<-ended
	_ = used.Close()
}

// The connection that is idle longest is found, whatever the order of opening.
func TestIdlest(t *testing.T) {
	start := time.Now()
	l := &Listener{quiet: time.Minute, open: map[*conn]struct{}{}}
	all := make([]*conn, 10)
	for i := range all {
		all[i] = &conn{of: l}
		all[i].heard.Store(true)
		all[i].used.Store(start.Add(time.Duration(i*7%10) * time.Second).UnixNano())
		l.open[all[i]] = struct{}{}
	}
	all[0].serving.Store(1) // else the first
	if c := l.idlest(start.Add(time.Minute)); c != nil {
		t.Error("a connection in use is idle")
	}
	for i := 1; i < len(all); i++ {
		c := l.idlest(start.Add(2 * time.Minute))
		if c != all[i*3%10] {
			t.Fatalf("connection %d is not the one that is idle longest", i)
		}
		delete(l.open, c)
	}
	if c := l.idlest(start.Add(time.Hour)); c != nil {
		t.Error("the connection of a request that is served is idle")
	}
}

// Of many connections, the only one that is idle is found, and of idle ones the one that is idle
// longest, whatever is used meanwhile.
func TestIdlestOfMany(t *testing.T) {
	now := time.Now()
	l := &Listener{open: map[*conn]struct{}{}}
	all := make([]*conn, 1000)
	for i := range all {
		all[i] = &conn{of: l}
		all[i].serving.Store(1)
		l.open[all[i]] = struct{}{}
	}
	all[500].serving.Store(0)
	if l.idlest(now) != all[500] {
		t.Error("the only connection that is idle is not found")
	}
	for i, c := range all {
		c.serving.Store(0)
		c.used.Store(int64(i))
	}
	for i, c := range all {
		if i%7 == 3 {
			c.use()
			continue
		}
		if l.idlest(now) != c {
			t.Fatalf("connection %d is not the one that is idle longest", i)
		}
		delete(l.open, c)
	}
}

// A client that is answered before it has sent its body can send it, and then reads the answer. It
// keeps no other client out meanwhile.
func TestAnAnswerBeforeTheEndOfTheBody(t *testing.T) {
	t.Parallel()
	l, err := On(context.Background(), "--http", "127.0.0.1:0", Bounds{Connections: 1})
	if err != nil {
		t.Fatal(err)
	}
	server := Server(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.Path) //nolint:gosec // a test
	}))
	go func() { _ = server.Serve(l) }()
	defer server.Close()
	const length = 20 << 20
	upload := func() net.Conn {
		c := open(t, l)
		_, _ = fmt.Fprintf(c, "POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n", length)
		for lingering := 0; lingering == 0; runtime.Gosched() {
			l.mu.Lock()
			lingering = l.lingering
			l.mu.Unlock()
		}
		return c
	}
	c := upload()
	_, err = c.Write(make([]byte, length))
	r, failed := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || failed != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%v, %v, %v", r, err, failed)
	}
	_ = r.Body.Close()
	_ = c.Close()
	upload()
	if text := get(t, open(t, l), "/other"); text != "/other" {
		t.Errorf("another client: %q", text)
	}
}
