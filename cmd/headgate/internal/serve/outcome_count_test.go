package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate/internal/redistest"
)

// call asks h as the client at 192.0.2.1.
func call(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return w
}

// A denial that is repeated from the cache is counted, and forward auth blocks a client for it.
func TestDenialsOfTheCacheAreCounted(t *testing.T) {
	redis := redistest.Start(t)
	s := newTestServer(t, "store: redis://"+redis.Addr+"\nrules:\n"+
		"  - {name: calls, key: ip, limits: 1/h}\n"+
		"  - {name: repeaters, key: ip, limits: 3/h, count: denied}\n", new(buffer))
	denies := func(rule string) {
		t.Helper()
		w := call(t, s.http(), "/auth")
		if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "The rule "+rule) {
			t.Fatalf("%d %s, want a denial by %s", w.Code, w.Body, rule)
		}
	}
	if w := call(t, s.http(), "/auth"); w.Code != http.StatusOK {
		t.Fatal(w.Code)
	}
	denies("calls")
	n, err := redis.Do(t.Context(), "DEL", "hg:{ip:192.0.2.1}:calls")
	if err != nil || n != "1" {
		t.Fatal(n, err)
	}
	denies("calls") // from the cache
	denies("calls")
	denies("repeaters")
	denies("repeaters")
}

// Five requests that wait for their answers use up a limit of five of two instances. Tokens that
// come back through one instance are there for the other at once.
func TestOutcomesOfTwoInstances(t *testing.T) {
	redis := redistest.Start(t)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "store: redis://" + redis.Addr + "\nrules: [{name: logins, key: ip, limits: 5/h, count: 401}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var reached atomic.Int64
	started, answer := make(chan struct{}, 5), make(chan int, 5)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		started <- struct{}{}
		w.WriteHeader(<-answer)
	}))
	defer app.Close()
	var edges [2]http.Handler
	for i := range edges {
		p := Proxy{Listen: "127.0.0.1:0", Target: app.URL}
		s, err := newServer(Options{
			Files: []string{file}, Proxies: []Proxy{p}, Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		if edges[i], err = s.proxy(p); err != nil {
			t.Fatal(err)
		}
	}
	var slow sync.WaitGroup
	for range 5 {
		slow.Go(func() { call(t, edges[0], "/") })
		<-started
	}
	if w := call(t, edges[1], "/"); w.Code != http.StatusTooManyRequests {
		t.Error(w.Code)
	}
	for range 5 {
		answer <- http.StatusOK
	}
	slow.Wait()
	answer <- http.StatusOK
	if w := call(t, edges[1], "/"); w.Code != http.StatusOK {
		t.Errorf("after 5 right guesses: %d", w.Code)
	}
	if n := reached.Load(); n != 6 {
		t.Errorf("%d reach the server, want 6", n)
	}
}
