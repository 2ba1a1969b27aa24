package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/httplimit"
)

// panics calls f and reports whether that panics.
func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// A panic of a caller's function or of the handler goes on, and later requests are served.
func TestMiddlewareAfterAPanic(t *testing.T) {
	for name, spoil := range map[string]func(o *httplimit.Options, fail func()) http.HandlerFunc{
		"Key": func(o *httplimit.Options, fail func()) http.HandlerFunc {
			o.Key = func(*http.Request) string { fail(); return "k" }
			return nil
		},
		"Cost": func(o *httplimit.Options, fail func()) http.HandlerFunc {
			o.Cost = func(*http.Request) int64 { fail(); return 1 }
			return nil
		},
		"Skip": func(o *httplimit.Options, fail func()) http.HandlerFunc {
			o.Skip = func(*http.Request) bool { fail(); return false }
			return nil
		},
		"Observe": func(o *httplimit.Options, fail func()) http.HandlerFunc {
			o.Observe = func(*http.Request, headgate.Decision, error) { fail() }
			return nil
		},
		"handler": func(_ *httplimit.Options, fail func()) http.HandlerFunc {
			return func(http.ResponseWriter, *http.Request) { fail() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			failing, o := true, httplimit.Options{}
			next := spoil(&o, func() {
				if failing {
					panic("mine")
				}
			})
			if next == nil {
				next = func(http.ResponseWriter, *http.Request) {}
			}
			limit, err := httplimit.New(newLimiter(t, "10/h", "20/d"), o)
			if err != nil {
				t.Fatal(err)
			}
			h := limit(next)
			get := func() int {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
				return w.Code
			}
			if !panics(func() { get() }) {
				t.Error("the panic was lost")
			}
			failing = false
			if code := get(); code != http.StatusOK {
				t.Errorf("the next request: %d", code)
			}
		})
	}
}

// A request that panics at the head of the line of a pause lets those behind it go on.
func TestPauseLineAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing bool
		limits := []headgate.Limit{parse(t, "1000/s")}
		l, err := headgate.NewLimiterFunc(headgate.NewMemorySize(100), func(context.Context, string) ([]headgate.Limit, error) {
			if failing {
				failing = false
				panic("mine")
			}
			return limits, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: pausing}
		client := newClient(t, l, a, httplimit.TransportOptions{})
		call(t.Context(), client, "http://api.example/pause")
		failing = true
		var all sync.WaitGroup
		all.Go(func() {
			if !panics(func() { call(t.Context(), client, "http://api.example/first") }) {
				t.Error("the panic was lost")
			}
		})
		synctest.Wait()
		callEach(t, &all, client, "api.example", 1, 3)
		all.Wait()
		slices.Sort(a.calls) // two are made at one moment
		wantCalls(t, a, "/1 30s", "/2 30s", "/pause 0s")
	})
}

// withoutPauses is a store that cannot say what is left of a pause alone, once it fails: it panics,
// or returns an error.
type withoutPauses struct {
	headgate.Store
	fails  atomic.Bool
	panics bool
}

func (s *withoutPauses) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	switch {
	case !s.fails.Load() || r.Limit.Name() != "httplimit.pause":
		return s.Store.Take(ctx, r)
	case s.panics:
		panic("mine")
	default:
		return headgate.Decision{}, errors.New("the store is gone")
	}
}

// A request that panics after it has reserved gives its tokens back, and its permit: in the store,
// and in Observe.
func TestReservationAfterAPanic(t *testing.T) {
	for _, inStore := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &withoutPauses{Store: headgate.NewMemorySize(100), panics: inStore}
			l, err := headgate.NewLimiter(store, parse(t, "5/h"))
			if err != nil {
				t.Fatal(err)
			}
			a := &api{}
			client := newClient(t, l, a, httplimit.TransportOptions{
				Permits: newPermits(t, concurrency.NewMemory(), 1, time.Minute), Period: time.Second,
				Observe: func(*http.Request, time.Duration, error) { panic("mine") },
			})
			call(t.Context(), client, "http://api.example/first")
			store.fails.Store(true) // the next request waits for a permit, and looks for a pause again
			if !panics(func() { call(t.Context(), client, "http://api.example/second") }) {
				t.Errorf("in the store %v: the panic was lost", inStore)
			}
			synctest.Wait()
			if d, err := l.Peek(t.Context(), "host:api.example"); err != nil || d.Remaining != 4 {
				t.Errorf("in the store %v: %+v, %v", inStore, d, err)
			}
			store.fails.Store(false)
			if call(t.Context(), client, "http://api.example/third"); time.Since(a.start) > 2*time.Second {
				t.Errorf("in the store %v: the permit was kept", inStore)
			}
		})
	}
}

// closed reports whether the body of a response was closed.
type closed struct{ is bool }

func (*closed) Read([]byte) (int, error) { return 0, nil }
func (c *closed) Close() error           { c.is = true; return nil }

// The response to a request whose Observe panics is closed.
func TestResponseAfterAPanic(t *testing.T) {
	body := &closed{}
	a := &api{answer: func(r *http.Request) *http.Response {
		response := pausing(r)
		response.Body = body
		return response
	}}
	client := newClient(t, newLimiter(t, "10/s"), a, httplimit.TransportOptions{
		Observe: func(*http.Request, time.Duration, error) { panic("mine") },
	})
	if !panics(func() { call(t.Context(), client, "http://api.example/pause") }) || !body.is {
		t.Errorf("the panic was lost, or the body stays open: %t", body.is)
	}
}
