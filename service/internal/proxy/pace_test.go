package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/service/internal/rules"
)

func dial(t *testing.T, e *edge) net.Conn {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(e.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
	return conn
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

// A client that stops in the middle of its body is told so, and the server is let go.
func TestBodyStalls(t *testing.T) {
	t.Parallel()
	ended := make(chan error, 1)
	e := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.ReadAll(r.Body)
		ended <- err
	}, "", rules.Rule{Name: "one", Permits: 1})
	conn := dial(t, e)
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
	r := next(t, bufio.NewReader(conn))
	if r.StatusCode != http.StatusRequestTimeout {
		t.Errorf("%d %s", r.StatusCode, r.text)
	}
	if err := <-ended; err == nil {
		t.Error("the server took half a body for a whole one")
	}
	until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
}

// A slow body arrives, if each part comes in time, and the connection serves the next request.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		time.Sleep(300 * time.Millisecond) // longer than a client may stall
		_, _ = w.Write(b)
	}, "", rules.Rule{Name: "one", Permits: 1})
	conn := dial(t, e)
	answers := bufio.NewReader(conn)
	for range 2 {
		_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
		for _, c := range "12345" {
			time.Sleep(60 * time.Millisecond)
			_, _ = io.WriteString(conn, string(c))
		}
		if r := next(t, answers); r.StatusCode != http.StatusOK || r.text != "12345" {
			t.Errorf("%d %q", r.StatusCode, r.text)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

// A client that takes nothing of a response does not hold a permit for ever.
func TestResponseStalls(t *testing.T) {
	t.Parallel()
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		part := make([]byte, 1<<20)
		for r.Context().Err() == nil {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}, "", rules.Rule{Name: "one", Permits: 1})
	conn := dial(t, e)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
	until(t, "the permit is acquired", func() bool { return e.permits.Keys() == 1 })
	until(t, "the permit is released", func() bool { return e.permits.Keys() == 0 })
}

// A denial does not wait for a body that does not come.
func TestDenialDoesNotWaitForBody(t *testing.T) {
	t.Parallel()
	e := serve(t, echo, "", rules.Rule{Name: "r", Limits: per(1)})
	get(t, e.url)
	conn := dial(t, e)
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\nhalf")
	if r := next(t, bufio.NewReader(conn)); r.StatusCode != http.StatusTooManyRequests || !r.Close {
		t.Errorf("%d, closed %t", r.StatusCode, r.Close)
	}
}

// What a server says before its response goes on, and takes no field of the response away.
func TestEarlyHints(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusOK)
	}, "", rules.Rule{Name: "r", Limits: per(9)})
	conn := dial(t, e)
	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.1 103 ") ||
		!strings.Contains(string(b), "X-Ratelimit-Remaining: 8\r\n") {
		t.Errorf("%s, %v", b, err)
	}
}
