package main

import (
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// Two servers share one limit. Without their Redis, all requests pass.
func TestHandler(t *testing.T) {
	redis := redistest.Start(t)
	var lines strings.Builder // also of a busy machine, on which Redis seems to be away before it is
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	var servers [2]http.Handler
	for i := range servers {
		h, err := newHandler(redis.URL())
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = h
	}
	granted := func(requests int) int {
		n := 0
		for i := range requests {
			w := httptest.NewRecorder()
			servers[i%2].ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			if w.Code == http.StatusOK {
				n++
			}
		}
		return n
	}
	// A token comes each 100 ms while this runs.
	if n := granted(100); n < 20 || n > 60 {
		t.Errorf("%d of 100 granted by a bucket of 20", n)
	}
	redis.Stop()
	if n := granted(10); n != 10 {
		t.Errorf("%d of 10 passed without Redis", n)
	}
	if n := strings.Count(lines.String(), "passing without a limit: "); n < 1 || n > 20 {
		t.Errorf("%d lines of at most one a second: %s", n, lines.String())
	}
	_, port, err := net.SplitHostPort(redis.Addr)
	if err != nil {
		t.Fatal(err)
	}
	redistest.Start(t, "--port", port)
	// Of the ten that passed, those that were under way are charged now.
	if n := granted(100); n < 10 || n > 60 {
		t.Errorf("%d of 100 granted once Redis is back", n)
	}
}
