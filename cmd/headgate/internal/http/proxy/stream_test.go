package proxy

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// The tests of this file let time pass, so they run in a bubble, on connections in memory.

// network connects the ends of a test. It is a net.Listener.
type network chan net.Conn

func (n network) Accept() (net.Conn, error) {
	conn, open := <-n
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (n network) Close() error   { close(n); return nil }
func (n network) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

func (n network) dial() net.Conn {
	near, far := net.Pipe()
	n <- far
	return near
}

// serve serves h until the test ends.
func (n network) serve(t *testing.T, h http.Handler) {
	t.Helper()
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(n) }() // until it is closed
	t.Cleanup(func() { _ = server.Close() })
}

// bubble runs a test with an app behind a proxy. A connection to the proxy is made by dial.
func bubble(
	t *testing.T, app http.HandlerFunc, rule rules.Rule,
	test func(t *testing.T, e *edge, dial func() net.Conn),
) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		behind, front := make(network), make(network)
		behind.serve(t, app)
		e := newEdge(t, headgate.NewMemory(), "http://app", "", rule)
		transport := e.handler.(*handler).proxy.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			return behind.dial(), nil
		}
		t.Cleanup(transport.CloseIdleConnections)
		front.serve(t, e.handler)
		test(t, e, func() net.Conn {
			conn := front.dial()
			t.Cleanup(func() { _ = conn.Close() })
			return conn
		})
	})
}

// next reads the next response of a connection.
func next(t *testing.T, from *bufio.Reader) reply {
	t.Helper()
	r, err := http.ReadResponse(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{r, string(b)}
}

const plain = "GET / HTTP/1.1\r\nHost: h\r\n\r\n"

// tooMany checks that another request finds no permit.
func tooMany(t *testing.T, conn net.Conn) {
	t.Helper()
	_, _ = io.WriteString(conn, plain)
	r := next(t, bufio.NewReader(conn))
	if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "1" ||
		!strings.Contains(r.text, "allows no more concurrent requests") {
		t.Errorf("%d %v %s", r.StatusCode, r.Header, r.text)
	}
}

var one = rules.Rule{Name: "one", Permits: 1}

// Parts of a stream arrive one by one, however long it is silent, and the permit is held until its
// end.
func TestStreamHoldsPermit(t *testing.T) {
	app := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, part := range []string{"a", "b", "c"} {
			_, _ = io.WriteString(w, "data: "+part+"\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(time.Hour)
		}
	}
	bubble(t, app, one, func(t *testing.T, e *edge, dial func() net.Conn) {
		conn := dial()
		_, _ = io.WriteString(conn, plain)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		lines, started := bufio.NewReader(r.Body), time.Now()
		for i, part := range []string{"a", "b", "c"} {
			got, err := lines.ReadString('\n')
			if after := time.Since(started); err != nil || got != "data: "+part+"\n" ||
				after.Round(time.Minute) != time.Duration(i)*time.Hour {
				t.Fatalf("%q after %s, %v; want %s", got, after, err, part)
			}
			_, _ = lines.ReadString('\n')
			tooMany(t, dial())
		}
		if rest, err := io.ReadAll(lines); err != nil || len(rest) > 0 {
			t.Errorf("%q, %v", rest, err)
		}
		until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
	})
}

// shout is a server of websockets.
func shout(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	conn, both, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\n" +
		"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	_ = both.Flush()
	for {
		line, err := both.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = both.WriteString(strings.ToUpper(line))
		_ = both.Flush()
	}
}

func TestWebsocket(t *testing.T) {
	bubble(t, shout, rules.Rule{Name: "one", Permits: 1, Limits: per(9)},
		func(t *testing.T, e *edge, dial func() net.Conn) {
			conn := dial()
			_, _ = io.WriteString(conn,
				"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			lines := bufio.NewReader(conn)
			r, err := http.ReadResponse(lines, nil)
			if err != nil || r.StatusCode != http.StatusSwitchingProtocols ||
				r.Header.Get("X-Ratelimit-Remaining") != "8" {
				t.Fatalf("%v, %v", r, err)
			}
			defer r.Body.Close()
			for _, word := range []string{"one\n", "two\n"} {
				_, _ = io.WriteString(conn, word)
				if got, err := lines.ReadString('\n'); err != nil || got != strings.ToUpper(word) {
					t.Fatalf("%q, %v", got, err)
				}
				tooMany(t, dial())
				time.Sleep(time.Hour)
			}
			_ = conn.Close()
			until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
		})
}

// A client that stops in the middle of its body gets an error, and the server is free again.
func TestBodyStalls(t *testing.T) {
	var failed error
	app := func(_ http.ResponseWriter, r *http.Request) { _, failed = io.ReadAll(r.Body) }
	bubble(t, app, one, func(t *testing.T, e *edge, dial func() net.Conn) {
		conn, started := dial(), time.Now()
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
		r := next(t, bufio.NewReader(conn))
		if after := time.Since(started); r.StatusCode != http.StatusRequestTimeout ||
			after.Round(time.Second) != defaultStall {
			t.Errorf("%d after %s", r.StatusCode, after)
		}
		until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
		if synctest.Wait(); failed == nil {
			t.Error("the server took half a body for a whole one")
		}
	})
}

// A slow body arrives, if it comes at a least rate, and the connection serves the next request.
func TestSlowBody(t *testing.T) {
	app := func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(time.Hour)
		_, _ = io.WriteString(w, strconv.Itoa(len(b)))
	}
	bubble(t, app, one, func(t *testing.T, _ *edge, dial func() net.Conn) {
		conn := dial()
		answers := bufio.NewReader(conn)
		for range 2 {
			_, _ = io.WriteString(conn,
				"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 125000\r\n\r\n")
			for range 5 {
				time.Sleep(defaultStall * 3 / 4)
				_, _ = io.WriteString(conn, strings.Repeat("x", 25000))
			}
			if r := next(t, answers); r.StatusCode != http.StatusOK || r.text != "125000" {
				t.Errorf("%d %q", r.StatusCode, r.text)
			}
			time.Sleep(defaultStall / 2)
		}
	})
}

// A body that trickles ends with the patience of the server, and while the server stops sooner. In
// HTTP/1.1 there is no stream of gRPC, whatever the client says.
func TestTricklingBody(t *testing.T) {
	app := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }
	for ends, after := range map[time.Duration]time.Duration{
		time.Hour:       defaultStall,
		5 * time.Second: 5*time.Second + hurryTime,
	} {
		bubble(t, app, one, func(t *testing.T, e *edge, dial func() net.Conn) {
			conn, started := dial(), time.Now()
			time.AfterFunc(ends, e.engine.EndHolds)
			e.handler.(*handler).calls = true
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n"+
				"Content-Type: application/grpc\r\n\r\n")
			var trickle sync.WaitGroup
			trickle.Go(func() {
				for err := error(nil); err == nil; _, err = io.WriteString(conn, "x") {
					time.Sleep(time.Second / 2)
				}
			})
			r := next(t, bufio.NewReader(conn))
			if took := time.Since(started); r.StatusCode != http.StatusRequestTimeout ||
				took < after || took > after+time.Second {
				t.Errorf("%d after %s; want %s", r.StatusCode, took, after)
			}
			until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
			_ = conn.Close()
			trickle.Wait()
		})
	}
}

// A response does not wait for a body that its server does not want, which ends soon.
func TestResponseBeforeTheEndOfTheBody(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, both, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = both.WriteString("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
		_ = both.Flush()
		_, _ = io.Copy(io.Discard, both)
	}, "", one)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9000\r\n\r\nx")
	answers := bufio.NewReader(conn)
	if r := next(t, answers); r.StatusCode != http.StatusForbidden || !r.Close {
		t.Errorf("%d, closes: %t", r.StatusCode, r.Close)
	}
	until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
	if _, err := answers.ReadByte(); err != io.EOF {
		t.Error(err)
	}
}

// timedWriter is a response. It counts read deadlines.
type timedWriter struct {
	*httptest.ResponseRecorder

	deadlines atomic.Int64
}

func (w *timedWriter) SetReadDeadline(time.Time) error { w.deadlines.Add(1); return nil }

// lateBody is a body whose only part comes when late is closed, whoever closes the body.
type lateBody struct{ late chan struct{} }

func (b *lateBody) Read(p []byte) (int, error) { <-b.late; return copy(p, "x"), nil }
func (b *lateBody) Close() error               { return nil }

// A body that is still read, or hurried, when its handler has ended sets no deadline: it would be
// the next request's, and in HTTP/2 to set one panics.
func TestBodyOutlivesItsHandler(t *testing.T) {
	app := func(http.ResponseWriter, *http.Request) {} // answers without the body
	rule := rules.Rule{Name: "all", Limits: per(9)}
	bubble(t, app, rule, func(t *testing.T, e *edge, _ func() net.Conn) {
		body := &lateBody{make(chan struct{})}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://h/", body)
		r.ContentLength = 1 << 20
		w := &timedWriter{ResponseRecorder: httptest.NewRecorder()}
		e.handler.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%d: %s", w.Code, w.Body)
		}
		before := w.deadlines.Load()
		close(body.late)
		time.Sleep(time.Second) // the app's connection is closed, too
		if n := w.deadlines.Load() - before; n != 0 {
			t.Errorf("%d deadlines were set after the handler ended", n)
		}

		r.Body = io.NopCloser(iotest.ErrReader(io.ErrUnexpectedEOF))
		paced := newPacedWriter(w, time.Second)
		b := newPacedBody(paced, r, false)
		_, _ = b.Read(make([]byte, 1))
		paced.finish(b)
		before = w.deadlines.Load()
		b.hurry()
		if n := w.deadlines.Load() - before; n != 0 {
			t.Errorf("hurry set %d deadlines after the handler ended", n)
		}
	})
}

// Clients that have left take no place among those that wait, even if they have not sent all of
// their requests.
func TestClientsThatLeftDoNotWait(t *testing.T) {
	rule := rules.Rule{Name: "r", MaxWait: 10 * time.Second, MaxWaiting: 1,
		Limits: []headgate.Limit{headgate.PerSecond(1)}}
	bubble(t, echo, rule, func(t *testing.T, e *edge, dial func() net.Conn) {
		conn := dial()
		_, _ = io.WriteString(conn, plain)
		next(t, bufio.NewReader(conn))
		for _, body := range []string{"half", "", strings.Repeat("x", 1<<20)} { // the server reads a MiB
			gone := dial()
			_, _ = io.WriteString(gone, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n")
			go func() { _, _ = io.WriteString(gone, body) }()
			synctest.Wait()
			_ = gone.Close()
			synctest.Wait()
		}
		if n := e.waiting(); n != 0 {
			t.Errorf("%d clients that have left wait", n)
		}
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\nbody")
		if r := next(t, bufio.NewReader(conn)); r.StatusCode != http.StatusOK {
			t.Errorf("a client that stays: %d", r.StatusCode)
		}
	})
}

// A client that takes nothing of a response does not hold a permit for ever.
func TestResponseStalls(t *testing.T) {
	app := func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).Flush()
		time.Sleep(time.Second) // until the client has the header
		part := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}
	bubble(t, app, one, func(t *testing.T, e *edge, dial func() net.Conn) {
		conn := dial()
		_, _ = io.WriteString(conn, plain)
		r, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		time.Sleep(defaultStall / 2)
		if e.permits.Keys() != 1 {
			t.Error("no permit is held")
		}
		time.Sleep(defaultStall)
		if e.permits.Keys() != 0 {
			t.Error("the permit is held")
		}
	})
}

// A denial does not wait for a body that does not come.
func TestDenialDoesNotWaitForBody(t *testing.T) {
	bubble(t, echo, rules.Rule{Name: "r", Limits: per(1)},
		func(t *testing.T, _ *edge, dial func() net.Conn) {
			conn, started := dial(), time.Now()
			answers := bufio.NewReader(conn)
			_, _ = io.WriteString(conn, plain)
			next(t, answers)
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
			r := next(t, answers)
			if after := time.Since(started); r.StatusCode != http.StatusTooManyRequests || !r.Close ||
				after > time.Second {
				t.Errorf("%d after %s, closed %t", r.StatusCode, after, r.Close)
			}
		})
}

// What a server says before its response goes on, and takes no field of the response away.
func TestEarlyHints(t *testing.T) {
	app := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	}
	bubble(t, app, rules.Rule{Name: "r", Limits: per(9)},
		func(t *testing.T, _ *edge, dial func() net.Conn) {
			conn := dial()
			_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
			b, err := io.ReadAll(conn)
			if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 103 ") ||
				!strings.Contains(string(b), "X-Ratelimit-Remaining: 8\r\n") {
				t.Errorf("%s, %v", b, err)
			}
		})
}
