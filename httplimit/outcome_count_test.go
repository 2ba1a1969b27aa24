package httplimit_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

func failures(status int) bool { return status >= http.StatusBadRequest }

// Count sees one status of each request: the first that is no information.
func TestCountSees(t *testing.T) {
	var seen []int
	limit, err := httplimit.New(newLimiter(t, "9/h"), httplimit.Options{
		Count: func(status int) bool { seen = append(seen, status); return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	for want, h := range map[int]http.HandlerFunc{
		101: func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusSwitchingProtocols)
		},
		200: func(http.ResponseWriter, *http.Request) {},
		2200: func(w http.ResponseWriter, _ *http.Request) {
			w.(http.Flusher).Flush() // sends 200
			w.WriteHeader(http.StatusNotFound)
		},
		404: func(w http.ResponseWriter, _ *http.Request) {
			for _, status := range []int{100, 102, 103, 404, 200} {
				w.WriteHeader(status)
			}
		},
		1101: func(w http.ResponseWriter, _ *http.Request) {
			if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = conn.Close()
			}
		},
	} {
		ended := make(chan struct{})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(ended)
			limit(h).ServeHTTP(w, r)
		}))
		if r, err := http.DefaultTransport.RoundTrip(
			httptest.NewRequestWithContext(t.Context(), "GET", server.URL, nil)); err == nil {
			_ = r.Body.Close()
		}
		<-ended
		server.Close()
		if len(seen) != 1 || seen[0] != want%1000 {
			t.Errorf("Count has seen %d, want %d", seen, want%1000)
		}
		seen = nil
	}
}

// counted puts a limiter that counts failures in front of h.
func counted(
	t *testing.T, l *headgate.Limiter, o httplimit.Options, h http.HandlerFunc,
) http.Handler {
	t.Helper()
	o.Count = failures
	limit, err := httplimit.New(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return limit(h)
}

func remaining(t *testing.T, l *headgate.Limiter) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), "ip:192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

// What is refunded is the cost of the key that was charged, under all limits, whatever the handler
// has done to its request.
func TestCountRefundsWhatWasTaken(t *testing.T) {
	l := newLimiter(t, "hour=9/h", "day=9/d")
	status := http.StatusOK
	h := counted(t, l, httplimit.Options{
		Key:  func(r *http.Request) string { return r.Header.Get("Key") },
		Cost: func(r *http.Request) int64 { return int64(len(r.URL.RawQuery)) },
	}, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		cancel()
		*r = *r.WithContext(ctx)
		r.Header.Set("Key", "other")
		r.URL.RawQuery = ""
		w.WriteHeader(status)
	})
	for _, c := range []struct {
		status int
		query  string
		left   int64
	}{{200, "abc", 9}, {404, "abc", 6}, {200, "", 6}, {500, "", 6}, {200, "abcdef", 6}} {
		status = c.status
		get(t, h, func(r *http.Request) {
			r.Header.Set("Key", "ip:192.0.2.1")
			r.URL.RawQuery = c.query
		})
		if got := remaining(t, l); got != c.left {
			t.Errorf("%d at a cost of %d: %d remain, want %d", c.status, len(c.query), got, c.left)
		}
	}
}

// A request that was not charged is not refunded: one in shadow that is denied, and one that a
// store lets through without a check.
func TestCountRefundsNothingThatWasNotTaken(t *testing.T) {
	l := newLimiter(t, "2/h")
	observe := func(*http.Request, headgate.Decision, error) {}
	ok := func(http.ResponseWriter, *http.Request) {}
	shadow := counted(t, l, httplimit.Options{Shadow: true, Observe: observe}, ok)
	if _, err := l.AllowN(t.Context(), "ip:192.0.2.1", 2); err != nil {
		t.Fatal(err)
	}
	get(t, shadow)
	if got := remaining(t, l); got != 0 {
		t.Errorf("%d remain after a denial in shadow", got)
	}
	unchecked := &refunds{}
	l2, err := headgate.NewLimiter(unchecked, headgate.PerHour(2))
	if err != nil {
		t.Fatal(err)
	}
	get(t, counted(t, l2, httplimit.Options{}, ok))
	if unchecked.n != 0 {
		t.Errorf("%d refunds of what no limit has checked", unchecked.n)
	}
}

// refunds is a store that fails, with a fallback that allows everything. It counts refunds.
type refunds struct {
	headgate.Store

	n int
}

func (s *refunds) Take(_ context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Cost < 0 {
		s.n++
	}
	return headgate.Decision{Limit: r.Limit.Share(0)}, nil
}

// A client that leaves before it has an answer does not learn that it was right, and is charged.
func TestCountOfAClientThatLeft(t *testing.T) {
	l := newLimiter(t, "9/h")
	ctx, leave := context.WithCancel(t.Context())
	h := counted(t, l, httplimit.Options{}, func(http.ResponseWriter, *http.Request) { leave() })
	get(t, h, func(r *http.Request) { *r = *r.WithContext(ctx) })
	if got := remaining(t, l); got != 8 {
		t.Errorf("%d remain; want 8", got)
	}
}

// A panic leaves the request charged, also if the status has not been written when it is recovered.
func TestCountPanic(t *testing.T) {
	l := newLimiter(t, "9/h")
	h := counted(t, l, httplimit.Options{}, func(http.ResponseWriter, *http.Request) { panic("x") })
	func() {
		defer func() { _ = recover() }()
		get(t, h)
	}()
	if got := remaining(t, l); got != 8 {
		t.Errorf("%d remain, want 8", got)
	}
	h = counted(t, l, httplimit.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(20) // net/http panics
	})
	func() {
		defer func() { _ = recover() }()
		get(t, h)
	}()
	if got := remaining(t, l); got != 7 {
		t.Errorf("%d remain, want 7", got)
	}
}

// A refund goes on if the client leaves, ends in time, and its error is observed.
func TestCountRefundFails(t *testing.T) {
	for _, timeout := range []time.Duration{0, 50 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			store := &stuck{Store: headgate.NewMemory(), leave: leave}
			l, err := headgate.NewLimiter(store, headgate.PerHour(9))
			if err != nil {
				t.Fatal(err)
			}
			var seen []error
			h := counted(t, l, httplimit.Options{
				Timeout: timeout,
				Observe: func(_ *http.Request, _ headgate.Decision, err error) {
					seen = append(seen, err)
				},
			}, func(http.ResponseWriter, *http.Request) {})
			began := time.Now()
			get(t, h, func(r *http.Request) { *r = *r.WithContext(ctx) })
			if took, want := time.Since(began), cmp.Or(timeout, 5*time.Second); took != want {
				t.Errorf("took %s, want %s", took, want)
			}
			if len(seen) != 2 || seen[0] != nil || !errors.Is(seen[1], context.DeadlineExceeded) {
				t.Errorf("observed %v", seen)
			}
		})
	}
}

// stuck is a store that does not answer refunds. The client leaves meanwhile.
type stuck struct {
	headgate.Store

	leave func()
}

func (s *stuck) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Cost >= 0 {
		return s.Store.Take(ctx, r)
	}
	s.leave()
	<-ctx.Done()
	return headgate.Decision{}, ctx.Err()
}

// A handler can do with its response what it can do without Count.
func TestCountKeepsTheResponse(t *testing.T) { //nolint:gocognit // one case after the other
	l := newLimiter(t, "9/h")
	h := counted(t, l, httplimit.Options{}, func(w http.ResponseWriter, r *http.Request) {
		c := http.NewResponseController(w)
		for what, err := range map[string]error{
			"read deadline":  c.SetReadDeadline(time.Now().Add(time.Minute)),
			"write deadline": c.SetWriteDeadline(time.Now().Add(time.Minute)),
			"full duplex":    c.EnableFullDuplex(),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		switch r.URL.Path {
		case "/flush":
			_, _ = io.WriteString(w, "a")
			w.(http.Flusher).Flush()
			if err := c.Flush(); err != nil {
				t.Error(err)
			}
			<-r.Context().Done() // the client has the first byte, and leaves
		case "/hijack":
			conn, both, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = both.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\n")
			_ = both.Flush()
			_ = conn.Close()
		case "/copy":
			if n, err := w.(io.ReaderFrom).ReadFrom(strings.NewReader("copied")); n != 6 ||
				err != nil {
				t.Error(n, err)
			}
		}
	})
	server := httptest.NewServer(h)
	defer server.Close()
	for path, want := range map[string]string{
		"/flush": "a", "/hijack": "HTTP/1.1 101 ", "/copy": "copied",
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp",
			server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: h\r\n\r\n")
		lines := bufio.NewReader(conn)
		for got := ""; !strings.Contains(got, want); {
			line, err := lines.ReadString(want[len(want)-1])
			if got += line; err != nil {
				t.Fatalf("%s: %q, %v", path, got, err)
			}
		}
		_ = conn.Close()
	}
	if d, err := l.Peek(t.Context(), "ip:127.0.0.1"); err != nil || d.Remaining != 9 {
		t.Errorf("%+v, %v", d, err)
	}
	w := httptest.NewRecorder() // which cannot be hijacked
	counted(t, l, httplimit.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err,
			http.ErrNotSupported) {
			t.Error(err)
		}
		w.WriteHeader(http.StatusUpgradeRequired)
	}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if got := remaining(t, l); got != 8 || w.Code != http.StatusUpgradeRequired {
		t.Errorf("%d remain, want 8; status %d", got, w.Code)
	}
}
