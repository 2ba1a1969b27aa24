package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// metricsOf returns the metrics page of s.
func metricsOf(t testing.TB, s *server) string {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
	s.metrics.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

func TestPanicOfAHandler(t *testing.T) {
	var log buffer
	s := newTestServer(t, "rules: [{name: r, limits: [1/h]}]\n", &log)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addHTTP("proxy", l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		switch r.URL.Path {
		case "/written":
			_, _ = io.WriteString(w, "part")
		case "/flushed":
			_ = http.NewResponseController(w).Flush()
		case "/early":
			w.WriteHeader(http.StatusEarlyHints)
		case "/abort":
			panic(http.ErrAbortHandler)
		}
		panic("a defect")
	}))
	url, served := "http://"+l.Addr().String(), make(chan error, 1)
	go func() { served <- s.listeners[0].serve() }()
	for path, want := range map[string]int{
		"/": 500, "/early": 500, "/written": 0, "/flushed": 0, "/abort": 0,
	} {
		got := 0
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, nil) // not retried
		if err != nil {
			t.Fatal(err)
		}
		if res, err := http.DefaultTransport.RoundTrip(r); err == nil {
			_, err = io.ReadAll(res.Body)
			_ = res.Body.Close()
			if got = res.StatusCode; err != nil {
				got = 0 // the answer is cut off
			}
			if kind := res.Header.Get("Content-Type"); got == 500 && kind != "application/problem+json" {
				t.Errorf("%s: the answer is %s", path, kind)
			}
		}
		if got != want {
			t.Errorf("%s: status %d; want %d", path, got, want)
		}
	}
	if err := s.listeners[0].shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	lines := log.String()
	if n := strings.Count(lines, "level=ERROR"); n != 4 || !strings.Contains(lines, "panics_test.go") ||
		!strings.Contains(lines, "a defect") {
		t.Errorf("%d errors, want 4 with the stack:\n%s", n, lines)
	}
	if page := metricsOf(t, s); !strings.Contains(page, `headgate_panics_total{part="proxy"} 4`) {
		t.Error("the panics are not counted")
	}
}

// A task of the server goes on after a panic, until its context ends.
func TestPanicOfATask(t *testing.T) {
	s := newTestServer(t, "rules: [{name: r, limits: [1/h]}]\n", new(buffer))
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		runs := 0
		s.keepRunning(ctx, "files", func(ctx context.Context) {
			if runs++; runs < 4 {
				panic("a defect")
			}
			cancel()
			<-ctx.Done()
		})
		if runs != 4 {
			t.Errorf("the task ran %d times; want 4", runs)
		}
		cancelled := 0
		s.keepRunning(ctx, "files", func(context.Context) { cancelled++; panic("a defect") })
		if cancelled != 1 {
			t.Errorf("after the end, the task ran %d times; want 1", cancelled)
		}
	})
	if page := metricsOf(t, s); !strings.Contains(page, `headgate_panics_total{part="files"} 4`) {
		t.Error("the panics are not counted")
	}
}

// A panic of a function that follows the overrides does not end the process: it is logged and
// counted, and the function gets the changes that it has missed.
func TestPanicOfAFollower(t *testing.T) {
	var log buffer
	s := instanceOf(t, redistest.Start(t), &log)
	var panicked, told atomic.Int32
	s.overrides.Follow(func(modes map[string]rules.Mode) {
		if len(modes) > 0 && panicked.Add(1) == 1 {
			panic("a defect")
		}
		told.Store(int32(len(modes)))
	}, func(overrides.Reset) {})
	other := overrides.NewRedis(s.stores.redis, nil, nil)
	shadow := overrides.EncodeMode(overrides.Mode{Rule: "login", Mode: rules.Shadow})
	if err := other.Swap(t.Context(), overrides.ModeName("login"), "", shadow); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "it is told of the mode", func() bool { return told.Load() > 0 })
	if page := metricsOf(t, s); !strings.Contains(page, `headgate_panics_total{part="overrides"} 1`) {
		t.Error("the panic is not counted")
	}
	if text := log.String(); !strings.Contains(text, "a defect") {
		t.Errorf("the panic is not logged: %s", text)
	}
}

// The overrides of the store are in force for the first request.
func TestOverridesAreReadBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	store, err := redisstore.Open("redis://" + redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ban := rules.Override{Rule: "api", Key: "ip:127.0.0.1", Ban: true}
	if err := overrides.NewRedis(store, nil, nil).Put(t.Context(), ban); err != nil {
		t.Fatal(err)
	}
	r := serveHTTP(t, Options{Store: "redis://" + redis.Addr})
	if status, _ := r.get("/auth/api"); status != http.StatusTooManyRequests {
		t.Errorf("a banned key is answered with %d", status)
	}
}
