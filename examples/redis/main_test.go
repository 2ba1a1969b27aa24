package main

import (
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
)

// Two servers share one limit. Without their Redis, all requests pass.
func TestHandler(t *testing.T) {
	redis := redistest.Start(t)
	var lines strings.Builder // also of a busy machine, on which Redis seems to be away before it is
	log.SetOutput(&lines)
	defer log.SetOutput(os.Stderr)
	lastLog.Store(0)
	var servers [2]http.Handler
	for i := range servers {
		h, err := newHandler(redis.URL())
		if err != nil {
			t.Fatal(err)
		}
		servers[i] = h
	}
	// ask returns how many requests had a token, how many passed without a limit because Redis was
	// late or away, and for how many there were tokens.
	ask := func(requests int) (granted, without, most int) {
		began := time.Now()
		for i := range requests {
			w := httptest.NewRecorder()
			servers[i%2].ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
			switch {
			case w.Code == http.StatusOK && w.Header().Get("Ratelimit") == "":
				without++
			case w.Code == http.StatusOK:
				granted++
			}
		}
		return granted, without, 21 + int(time.Since(began)/(100*time.Millisecond))
	}
	if granted, without, most := ask(100); granted+without < 20 || granted > most {
		t.Errorf("%d of 100 granted and %d without a limit, by a bucket of 20 that granted %d",
			granted, without, most)
	}
	redis.Stop()
	if _, n, _ := ask(10); n != 10 {
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
	if granted, without, most := ask(100); granted+without < 10 || granted > most {
		t.Errorf("%d of 100 granted and %d without a limit, once Redis is back", granted, without)
	}
}
