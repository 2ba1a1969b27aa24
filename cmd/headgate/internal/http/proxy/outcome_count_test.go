package proxy

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/httplimit"
)

// front is a server of logins, 5 failures an hour: behind the proxy, or with the middleware.
type front struct {
	handler http.Handler
	left    func(*testing.T) int64
}

var fronts = map[string]func(*testing.T, http.HandlerFunc) front{
	"proxy": func(t *testing.T, app http.HandlerFunc) front {
		e := serve(t, app, "", rules.Rule{
			Name: "logins", Limits: per(5), Count: rules.Count{Statuses: []int{401, 403}},
		})
		return front{e.handler, func(t *testing.T) int64 { return e.left(t, "logins", "all") }}
	},
	"net/http": func(t *testing.T, app http.HandlerFunc) front {
		l, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(5))
		if err != nil {
			t.Fatal(err)
		}
		limit, err := httplimit.New(l, httplimit.Options{
			Key:   func(*http.Request) string { return "all" },
			Count: func(status int) bool { return status == 401 || status == 403 },
		})
		if err != nil {
			t.Fatal(err)
		}
		return front{limit(app), func(t *testing.T) int64 {
			d, err := l.Peek(t.Context(), "all")
			if err != nil {
				t.Fatal(err)
			}
			return d.Remaining
		}}
	},
}

// Of 1,000 wrong guesses at one time, 5 reach the handler.
func TestParallelGuesses(t *testing.T) {
	for name, open := range fronts {
		t.Run(name, func(t *testing.T) {
			var reached, denied atomic.Int64
			allDenied := make(chan struct{})
			f := open(t, func(w http.ResponseWriter, _ *http.Request) {
				reached.Add(1)
				<-allDenied
				w.WriteHeader(http.StatusUnauthorized)
			})
			var guesses sync.WaitGroup
			for range 1000 {
				guesses.Go(func() {
					w := httptest.NewRecorder()
					f.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil))
					if w.Code == http.StatusTooManyRequests && denied.Add(1) == 995 {
						close(allDenied)
					}
				})
			}
			guesses.Wait()
			if reached.Load() != 5 || denied.Load() != 995 || f.left(t) != 0 {
				t.Errorf("%d reach the handler, %d are denied, %d remain",
					reached.Load(), denied.Load(), f.left(t))
			}
		})
	}
}

// 1,000 right ones, one after the other, leave the level full. 5 slow ones deny the next.
func TestRightGuesses(t *testing.T) {
	for name, open := range fronts {
		t.Run(name, func(t *testing.T) {
			started, answer := make(chan struct{}), make(chan struct{})
			f := open(t, func(_ http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					started <- struct{}{}
					<-answer
				}
			})
			get := func(path string) int {
				w := httptest.NewRecorder()
				f.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
				return w.Code
			}
			for i := range 1000 {
				if status := get("/"); status != http.StatusOK {
					t.Fatalf("request %d: %d", i, status)
				}
			}
			if n := f.left(t); n != 5 {
				t.Errorf("%d remain of 5", n)
			}
			var slow sync.WaitGroup
			for range 5 {
				slow.Go(func() { get("/slow") })
				<-started
			}
			if status := get("/"); status != http.StatusTooManyRequests {
				t.Errorf("after 5 slow ones: %d", status)
			}
			close(answer)
			slow.Wait()
			if n := f.left(t); n != 5 {
				t.Errorf("%d remain of 5 after the slow ones", n)
			}
		})
	}
}

// outcomes are what a handler can do, and whether its request is charged.
var outcomes = []struct {
	name    string
	app     http.HandlerFunc
	charged bool
}{
	{"401", status(http.StatusUnauthorized), true},
	{"403", status(http.StatusForbidden), true},
	{"200", status(http.StatusOK), false},
	{"302", status(http.StatusFound), false},
	{"404", status(http.StatusNotFound), false},
	{"500", status(http.StatusInternalServerError), false},
	{"nothing", func(http.ResponseWriter, *http.Request) {}, false},
	{"a body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "in") }, false},
	{"a file", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, strings.NewReader("in"))
	}, false},
	{"a stream", func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		w.WriteHeader(http.StatusUnauthorized)
	}, false},
	{"103, 401", status(http.StatusEarlyHints, http.StatusUnauthorized), true},
	{"103, 200", status(http.StatusEarlyHints, http.StatusOK), false},
	{"401, 200", status(http.StatusUnauthorized, http.StatusOK), true},
	{"101", shout, false},
	{"a panic", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, true},
	{"a client that leaves", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusOK)
	}, true},
}

func status(list ...int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, s := range list {
			w.WriteHeader(s)
		}
	}
}

func TestOutcomes(t *testing.T) {
	for name, open := range fronts {
		for _, c := range outcomes {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				began, ended := make(chan struct{}, 1), make(chan struct{})
				f := open(t, func(w http.ResponseWriter, r *http.Request) {
					began <- struct{}{}
					c.app(w, r)
				})
				server := httptest.NewServer(http.HandlerFunc(
					func(w http.ResponseWriter, r *http.Request) {
						defer close(ended)
						f.handler.ServeHTTP(w, r)
					}))
				defer server.Close()
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				r := request(ctx, t, server.URL)
				if c.name == "101" {
					r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
				}
				if c.name == "a client that leaves" {
					go func() { <-began; leave() }()
				}
				res, err := http.DefaultTransport.RoundTrip(r)
				if err == nil {
					_ = res.Body.Close()
				}
				<-ended
				if got := f.left(t) == 4; got != c.charged || !got && f.left(t) != 5 {
					t.Errorf("%d remain of 5; charged: want %t", f.left(t), c.charged)
				}
			})
		}
	}
}

// A request that the server never got is answered with 502, which does not count here.
func TestOutcomeOfServerDown(t *testing.T) {
	for _, counts := range []int{401, 502} {
		server := httptest.NewServer(http.NotFoundHandler())
		server.Close()
		e := serveTarget(t, server.URL, "", rules.Rule{
			Name: "logins", Limits: per(5), Count: rules.Count{Statuses: []int{counts}},
		})
		if r := get(t, e.url); r.StatusCode != http.StatusBadGateway {
			t.Error(r.StatusCode)
		}
		if left, want := e.left(t, "logins", "all"), int64(5-counts/502); left != want {
			t.Errorf("count %d: %d remain, want %d", counts, left, want)
		}
	}
}

// A request that does not count costs nothing, whatever the response says of its cost.
func TestOutcomeAndCostOfResponse(t *testing.T) {
	e := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Tokens", "30")
		w.WriteHeader(http.StatusOK + 100*len(r.URL.Path[1:]))
	}, "", rules.Rule{
		Name: "tokens", Limits: per(100), Cost: rules.Cost{ResponseHeader: "X-Tokens"},
		Count: rules.Count{Statuses: []int{4}},
	})
	for _, c := range []struct {
		path string
		left int64
	}{{"/", 100}, {"/44", 70}, {"/333", 70}} {
		get(t, e.url+c.path)
		if left := e.left(t, "tokens", "all"); left != c.left {
			t.Errorf("%s: %d remain, want %d", c.path, left, c.left)
		}
	}
}
