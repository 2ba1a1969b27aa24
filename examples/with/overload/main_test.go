package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/failsafe-go/failsafe-go/adaptivelimiter"
	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/snippets"
)

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(3))
		if err != nil {
			t.Fatal(err)
		}
		process := adaptivelimiter.NewBuilder[any]().WithLimits(1, 1, 1).Build()
		served, finish := 0, make(chan struct{})
		h, err := newHandler(limiter, process, http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { served++; <-finish }))
		if err != nil {
			t.Fatal(err)
		}
		get := func() int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			return w.Code
		}
		check := func(when string, remaining int64) {
			t.Helper()
			d, err := limiter.Peek(t.Context(), "ip:192.0.2.1")
			if err != nil || d.Remaining != remaining {
				t.Errorf("%s: %d tokens remain, %v; want %d", when, d.Remaining, err, remaining)
			}
		}
		for n := range 3 {
			go get()
			synctest.Wait() // it has the only permit
			check("charged", int64(2-n))
			if n < 2 {
				if code := get(); code != http.StatusServiceUnavailable {
					t.Errorf("overloaded: %d", code)
				}
				check("refunded", int64(2-n))
			}
			finish <- struct{}{}
			synctest.Wait()
			check("finished", int64(2-n))
		}
		if code := get(); code != http.StatusTooManyRequests || served != 3 {
			t.Errorf("over the rate: %d, %d served", code, served)
		}
	})
}

func TestSnippets(t *testing.T) {
	snippets.Check(t, "../../../docs/overload.md", "overload", "main.go")
}
