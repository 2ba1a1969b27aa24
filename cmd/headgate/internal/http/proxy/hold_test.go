package proxy

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// stores returns a store in memory and one in Redis.
func stores(t *testing.T) map[string]headgate.Store {
	t.Helper()
	redis, err := redisstore.Open(redistest.Start(t).URL() + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { redis.Close() })
	return map[string]headgate.Store{"memory": headgate.NewMemory(), "Redis": redis}
}

// waiting returns how many requests wait.
func (e *edge) waiting() (n int64) {
	e.engine.Waiting(func(_ string, count int64) { n += count })
	return n
}

// hold sends requests for the paths, one after the other waits, and returns the answers of those
// whose client does not leave.
func (e *edge) hold(
	ctx context.Context, t *testing.T, paths ...string,
) (answers map[string]int, wait func()) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	answers = make(map[string]int)
	for _, path := range paths {
		before := e.waiting()
		all.Go(func() {
			r, err := http.DefaultTransport.RoundTrip(request(ctx, t, e.url+path))
			if err != nil {
				return
			}
			defer r.Body.Close()
			mu.Lock()
			defer mu.Unlock()
			answers[path] = r.StatusCode
		})
		until(t, path+" waits", func() bool { return e.waiting() > before })
	}
	return answers, all.Wait
}

// Requests over the limit reach the server, and those of clients that leave do not. In which order,
// rules.TestHoldKeepsTheOrder shows.
func TestHeldRequestsReachTheServer(t *testing.T) {
	t.Parallel()
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var came []string
			app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				came = append(came, strings.TrimPrefix(r.URL.Path, "/"))
			}))
			defer app.Close()
			e := serveStore(t, store, app.URL, "", rules.Rule{
				Name: "held", MaxWait: 20 * time.Second,
				Limits: []headgate.Limit{headgate.Per(1, 2*time.Second)}, // all wait before the third turn
			})
			get(t, e.url+"/first")
			ctx, leave := context.WithCancel(t.Context())
			answers, wait := e.hold(t.Context(), t, "/a", "/b")
			_, gone := e.hold(ctx, t, "/x", "/y")
			more, waitForMore := e.hold(t.Context(), t, "/c", "/d")
			leave()
			gone()
			until(t, "two have left", func() bool { return e.waiting() <= 4 })
			wait()
			waitForMore()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(came)
			if want := []string{"a", "b", "c", "d", "first"}; !slices.Equal(came, want) {
				t.Errorf("the server got %v; want %v", came, want)
			}
			for _, path := range []string{"/a", "/b", "/c", "/d"} {
				if answers[path]+more[path] != http.StatusOK {
					t.Errorf("%s was answered %d", path, answers[path]+more[path])
				}
			}
		})
	}
}

// A server that stops answers those that wait, and so does one whose rule has no room.
func TestHeldRequestsAreDenied(t *testing.T) {
	for name, store := range stores(t) {
		t.Run(name, func(t *testing.T) {
			e := serveStore(t, store, "http://127.0.0.1:1", "", rules.Rule{
				Name: "held", MaxWait: 20 * time.Second, MaxWaiting: 2,
				Limits: []headgate.Limit{headgate.Per(1, 9*time.Second)},
			})
			get(t, e.url+"/first")
			answers, wait := e.hold(t.Context(), t, "/a", "/b")
			r := get(t, e.url+"/c")
			if r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") == "" ||
				!strings.Contains(r.text, "The rule held is exceeded.") {
				t.Errorf("the third: %d %v %s", r.StatusCode, r.Header, r.text)
			}
			e.engine.EndHolds()
			wait()
			if answers["/a"] != 429 || answers["/b"] != 429 || e.waiting() != 0 {
				t.Errorf("%v, %d wait", answers, e.waiting())
			}
		})
	}
}

// Bodies of requests that wait take no memory from those that rules read. A request with a longer
// body does not wait.
func TestBodiesOfHeldRequests(t *testing.T) {
	next := make(chan struct{})
	tokens := budget(100_000)
	tokens.Match.Path = "/tokens"
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			<-next
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("{}"))
	}, "", tokens, rules.Rule{
		Name: "held", Match: rules.Match{Path: "/held"}, Permits: 1, MaxWait: 20 * time.Second,
	})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(next)
	post := func(size int) { chat(t, e.url+"/held", strings.NewReader(strings.Repeat("x", size))) }
	all.Go(func() { post(1) })
	until(t, "the permit is taken", func() bool { return e.permits.Keys() == 1 })
	for range 40 {
		all.Go(func() { post(maxHeld) })
	}
	until(t, "all wait", func() bool { return e.waiting() == 40 })
	chat(t, e.url+"/tokens", strings.NewReader(`{"max_tokens":20,"a":"`+strings.Repeat("x", 8000-24)+`"}`))
	until(t, "settled", func() bool { return e.left(t, "tokens", "all") == 100_000-8000/4-20*4 })
	large := strings.NewReader(strings.Repeat("x", maxHeld+1))
	r := chat(t, e.url+"/held", large)
	if r.StatusCode != http.StatusTooManyRequests || e.waiting() != 40 {
		t.Errorf("a longer body: %d, as %d wait", r.StatusCode, e.waiting())
	}
}
