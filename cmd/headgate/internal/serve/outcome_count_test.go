package serve

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/internal/redistest"
)

// call asks h as the client at 192.0.2.1.
func call(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	r.Header.Set("X-Forwarded-Uri", "/")
	h.ServeHTTP(w, r)
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

// Of 1,000 requests at once to two instances, as many as the limit grants reach the server.
// Tokens that come back through one instance are there for the other at once.
func TestOutcomesOfTwoInstances(t *testing.T) {
	redis := redistest.Start(t)
	file := write(t, filepath.Join(t.TempDir(), "rules.yaml"),
		"rules: [{name: logins, key: ip, limits: 5/h, count: 401}]\n")
	// So Redis decides all: without a time budget, no share lets more through on a busy machine.
	variables := map[string]string{"REDIS_URL": redis.Addr, "REDIS_SOCKET_TYPE": "tcp"}
	env, err := environment.Read(func(name string) (string, bool) {
		value, found := variables[name]
		return value, found
	})
	if err != nil {
		t.Fatal(err)
	}
	const requests = 1000
	var reached, answered atomic.Int64
	answer := make(chan int, requests)
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.WriteHeader(<-answer)
	}))
	defer app.Close()
	defer close(answer)
	var edges [2]http.Handler
	for i := range edges {
		p := Proxy{Listen: "127.0.0.1:0", Target: app.URL}
		s, err := newServer(Options{
			Files: []string{file}, Proxies: []Proxy{p}, Environment: env,
			Log: slog.New(slog.DiscardHandler),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.close)
		if edges[i], err = s.proxy(p); err != nil {
			t.Fatal(err)
		}
	}
	var crowd sync.WaitGroup
	for i := range requests {
		crowd.Go(func() {
			w := call(t, edges[i%2], "/")
			if answered.Add(1); w.Code != http.StatusTooManyRequests && w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	for reached.Load()+answered.Load() < requests {
		time.Sleep(time.Millisecond)
	}
	if n := reached.Load(); n != 5 {
		t.Errorf("%d of %d reach the server; want 5", n, requests)
	}
	for range reached.Load() {
		answer <- http.StatusOK
	}
	crowd.Wait()
	for i := range 7 {
		want := http.StatusUnauthorized
		if answer <- want; i >= 5 {
			want = http.StatusTooManyRequests
		}
		if w := call(t, edges[i%2], "/"); w.Code != want {
			t.Errorf("after 5 right guesses, wrong guess %d: %d", i, w.Code)
		}
	}
}
