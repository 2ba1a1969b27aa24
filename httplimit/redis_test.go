//go:build unix

package httplimit_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// serve serves a page behind the limits on a Redis, and returns a function that asks for
// it and gives the status and the header fields.
func serve(t *testing.T, redis *redistest.Server, o httplimit.Options) func() (int, http.Header) {
	t.Helper()
	store, err := redisstore.Open(redis.URL() + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	l, err := headgate.NewLimiter(store, parse(t, "1000/h"))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(protect(t, l, o))
	t.Cleanup(server.Close)
	return func() (int, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode, answer.Header
	}
}

// Redis goes away while a server serves, and comes back: in between the server does as its
// options say, and it recovers by itself.
func TestRedisGone(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      httplimit.Options
		status int
	}{
		{"open", httplimit.Options{}, http.StatusOK},
		{"closed", httplimit.Options{WhenStoreFails: httplimit.Closed}, http.StatusServiceUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			ask := serve(t, redis, c.o)
			if status, h := ask(); status != http.StatusOK || h.Get("X-Ratelimit-Remaining") != "999" {
				t.Fatalf("with Redis: %d %v", status, h)
			}
			redis.Stop()
			if status, h := ask(); status != c.status || h.Get("X-Ratelimit-Remaining") != "" {
				t.Errorf("without Redis: %d %v", status, h)
			}
			_, port, err := net.SplitHostPort(redis.Addr)
			if err != nil {
				t.Fatal(err)
			}
			redistest.Start(t, "--port", port)
			if status, h := ask(); status != http.StatusOK || h.Get("X-Ratelimit-Remaining") != "999" {
				t.Errorf("with an empty Redis at its place: %d %v", status, h)
			}
		})
	}
}

// A Redis that is there and does not answer costs a request no more than the timeout.
func TestRedisStopped(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   httplimit.Mode
		status int
	}{
		{"open", httplimit.Open, http.StatusOK},
		{"closed", httplimit.Closed, http.StatusServiceUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			redis := redistest.Start(t)
			var last error
			ask := serve(t, redis, httplimit.Options{
				WhenStoreFails: c.mode, Timeout: 500 * time.Millisecond,
				Observe: func(_ *http.Request, _ headgate.Decision, err error) { last = err },
			})
			if status, _ := ask(); status != http.StatusOK {
				t.Fatalf("with Redis: %d, %v", status, last)
			}
			signal(t, redis, syscall.SIGSTOP)
			status, _ := ask()
			if status != c.status || last == nil || !strings.Contains(last.Error(), "there was no answer in time") {
				t.Errorf("while Redis stands still: %d, %v", status, last)
			}
			signal(t, redis, syscall.SIGCONT)
			if status, h := ask(); status != http.StatusOK || h.Get("X-Ratelimit-Remaining") == "" {
				t.Errorf("once it goes on: %d %v, %v", status, h, last)
			}
		})
	}
}

func signal(t *testing.T, redis *redistest.Server, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(redis.Pid, s); err != nil {
		t.Fatal(err)
	}
}
