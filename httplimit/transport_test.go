package httplimit_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/httplimit"
)

// api is an API that records when it is called.
type api struct {
	mu     sync.Mutex
	start  time.Time
	calls  []string
	answer func(r *http.Request) *http.Response // nil: 200
	gate   chan struct{}                        // if not nil, answers wait until it is closed
	idle   bool
}

func (a *api) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	if a.gate != nil {
		<-a.gate
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, r.URL.Path+" "+time.Since(a.start).Round(time.Millisecond).String())
	if a.answer != nil {
		if answer := a.answer(r); answer != nil {
			return answer, nil
		}
	}
	return reply(http.StatusOK), nil
}

func (a *api) CloseIdleConnections() { a.idle = true }

func reply(status int, lines ...string) *http.Response {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return &http.Response{StatusCode: status, Header: h, Body: http.NoBody}
}

// newClient calls a through a Transport for l.
func newClient(
	t testing.TB, l *headgate.Limiter, a *api, o httplimit.TransportOptions,
) *http.Client {
	t.Helper()
	a.start, o.Base = time.Now(), a
	transport, err := httplimit.NewTransport(l, o)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// call asks for url and gives the status, or the error.
func call(ctx context.Context, client *http.Client, url string) string {
	//nolint:gosec,nolintlint // a server of a test; gosec notices it in some runs only
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := client.Do(r) //nolint:gosec,nolintlint // the same
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	return answer.Status + fmt.Sprint(answer.StatusCode)
}

// callEach makes n calls to host at the same time, in order: /0, /1, ...
func callEach(t *testing.T, all *sync.WaitGroup, client *http.Client, host string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		all.Go(func() {
			if got := call(t.Context(), client,
				fmt.Sprintf("http://%s/%d", host, i)); got != "200" {
				t.Errorf("call %d: %s", i, got)
			}
		})
		synctest.Wait()
	}
}

func wantCalls(t *testing.T, a *api, want ...string) {
	t.Helper()
	if !slices.Equal(a.calls, want) {
		t.Errorf("calls %q\nwant  %q", a.calls, want)
	}
}

func TestCallsGoInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		client := newClient(t, newLimiter(t, "2/s"), a, httplimit.TransportOptions{})
		var all sync.WaitGroup
		callEach(t, &all, client, "api.example", 0, 5)
		callEach(t, &all, client, "other.example", 10, 12)
		all.Wait()
		wantCalls(t, a, "/0 0s", "/1 0s", "/10 0s", "/11 0s", "/2 500ms", "/3 1s", "/4 1.5s")
		client.CloseIdleConnections()
		if !a.idle {
			t.Error("idle connections stay open")
		}
	})
}

// An answer asks for a pause: the next requests of its host wait, and are then sent at their
// start times, in the order in which they came.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/0" {
				return reply(http.StatusTooManyRequests, "Retry-After: 30")
			}
			return nil
		}}
		var told []string
		client := newClient(t, newLimiter(t, "1/s"), a,
			httplimit.TransportOptions{Observe: func(r *http.Request, pause time.Duration,
				err error) {
				told = append(told, fmt.Sprint(r.URL.Path, " ", pause, " ", err))
			}})
		if got := call(t.Context(), client, "http://api.example/0"); got != "429" {
			t.Error(got)
		}
		time.Sleep(10 * time.Second)
		var all sync.WaitGroup
		callEach(t, &all, client, "api.example", 1, 6)
		callEach(t, &all, client, "other.example", 10, 11)
		all.Wait()
		wantCalls(t, a, "/0 0s", "/10 10s", "/1 30s", "/2 31s", "/3 32s", "/4 33s", "/5 34s")
		if !slices.Equal(told, []string{"/0 30s <nil>"}) {
			t.Error(told)
		}
	})
}

// A pause comes while requests wait for start times: they are not all sent at its end, and
// are charged once.
func TestPauseWhileRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/2" {
				return reply(http.StatusOK, `RateLimit: "theirs";r=0;t=30`)
			}
			return nil
		}}
		l := newLimiter(t, "second=1/s", "day=100/d fixed-window")
		var costs atomic.Int64
		client := newClient(t, l, a, httplimit.TransportOptions{Cost: func(*http.Request) int64 {
			costs.Add(1)
			return 1
		}})
		var all sync.WaitGroup
		callEach(t, &all, client, "api.example", 0, 8)
		all.Wait()
		if n := costs.Load(); n != 8 {
			t.Errorf("Cost is called %d times for 8 calls", n)
		}
		wantCalls(t, a, "/0 0s", "/1 1s", "/2 2s", "/3 32s", "/4 33s", "/5 34s", "/6 35s", "/7 36s")
		ds, err := l.AllowEach(t.Context(), "host:api.example", 0, nil)
		if err != nil || ds[1].Remaining != 92 {
			t.Errorf("after 8 calls: %+v, %v", ds, err)
		}
	})
}

// body is one that tells whether it was closed.
type body struct {
	io.Reader

	closed bool
}

func (b *body) Close() error { b.closed = true; return nil }

// What cannot be sent in time fails at once, sends nothing, charges nothing and closes the
// body.
func TestCallsFailAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		l := newLimiter(t, "1/m")
		client := newClient(t, l, a, httplimit.TransportOptions{})
		call(t.Context(), client, "http://wait.example/")
		a.answer = func(*http.Request) *http.Response {
			return reply(http.StatusTooManyRequests,
				"Retry-After: 60")
		}
		call(t.Context(), client, "http://pause.example/")
		for _, host := range []string{"wait.example", "pause.example"} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			b := &body{Reader: strings.NewReader("text")}
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/", b)
			if err != nil {
				t.Fatal(err)
			}
			before := *r
			_, err = client.Transport.RoundTrip(r) //nolint:bodyclose // there is none
			late, ok := errors.AsType[*headgate.DeadlineError](err)
			if !ok || !errors.Is(err, context.DeadlineExceeded) ||
				late.Wait.Round(time.Millisecond) != time.Minute {
				t.Errorf("%s: %v", host, err)
			}
			if !b.closed || r.Body != before.Body || r.URL != before.URL ||
				len(r.Header) != len(before.Header) {
				t.Errorf("%s: body closed %v, request %+v", host, b.closed, r)
			}
			cancel()
		}
		if time.Since(a.start) != 0 || len(a.calls) != 2 {
			t.Errorf("after %s: %q", time.Since(a.start), a.calls)
		}
		client.Timeout = 59 * time.Second
		if got := call(t.Context(), client, "http://wait.example/"); !strings.Contains(got,
			"is in 1m0s, after the deadline") {
			t.Errorf("by the timeout of the client: %s", got)
		}
		client.Timeout = 0
		a.answer = nil
		if call(t.Context(), client,
			"http://wait.example/"); time.Since(a.start).Round(time.Millisecond) != time.Minute {
			t.Errorf("the next call was made after %s", time.Since(a.start))
		}
	})
}

// What a request costs; and what costs nothing waits for pauses alone.
func TestCostOfCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/pause" {
				return reply(http.StatusTooManyRequests, "Retry-After: 30")
			}
			return nil
		}}
		costs := map[string]int64{"/five": 5, "/free": 0, "/unknown": -1, "/pause": 0, "/much": 11}
		client := newClient(t, newLimiter(t, "10/10s"), a,
			httplimit.TransportOptions{
				Cost: func(r *http.Request) int64 { return costs[r.URL.Path] },
			})
		for _, path := range []string{"/five", "/five", "/free", "/five", "/unknown", "/pause",
			"/free"} {
			call(t.Context(), client, "http://api.example"+path)
		}
		wantCalls(t, a, "/five 0s", "/five 0s", "/free 0s", "/five 5s", "/unknown 6s", "/pause 6s",
			"/free 36s")
		if got := call(t.Context(), client, "http://api.example/much"); !strings.Contains(got,
			"cost is 11; want at most 10") {
			t.Error(got)
		}
	})
}

// A store that cannot say fails the call, or is done without.
func TestStoreOfCallsFails(t *testing.T) {
	for _, mode := range []httplimit.Mode{0, httplimit.Closed, httplimit.Open} {
		synctest.Test(t, func(t *testing.T) {
			store := &failing{Store: headgate.NewMemorySize(100)}
			l, err := headgate.NewLimiter(store, parse(t, "1/s"))
			if err != nil {
				t.Fatal(err)
			}
			a := &api{answer: func(r *http.Request) *http.Response {
				if r.URL.Path == "/pause" {
					return reply(http.StatusTooManyRequests, "Retry-After: 30")
				}
				return nil
			}}
			var observed int
			client := newClient(t, l, a,
				httplimit.TransportOptions{WhenStoreFails: mode,
					Observe: func(_ *http.Request, _ time.Duration, err error) {
						if err != nil {
							observed++
						}
					}})
			call(t.Context(), client, "http://api.example/pause")
			store.fails = true
			got := call(t.Context(), client, "http://api.example/")
			if mode == httplimit.Open {
				wantCalls(t, a, "/pause 0s", "/ 30s") // it keeps the pause that it knows of
			} else if !strings.Contains(got, "the store is gone") || len(a.calls) != 1 {
				t.Errorf("%s, calls %q", got, a.calls)
			}
			if observed == 0 {
				t.Error("Observe was not called")
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if got := call(ctx, client, "http://api.example/"); !strings.Contains(got,
				"context canceled") {
				t.Error(got)
			}
		})
	}
}

// What is no fault of the store fails also where a store that cannot say is done without.
func TestOpenIsNoWayAroundLimits(t *testing.T) {
	a := &api{}
	client := newClient(t, newLimiter(t, "10/h"), a, httplimit.TransportOptions{
		WhenStoreFails: httplimit.Open,
		Cost:           func(r *http.Request) int64 { return r.ContentLength },
	})
	post := func(ctx context.Context, n int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://api.example/",
			strings.NewReader(strings.Repeat("x", n)))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := post(ctx, 10); err != nil {
		t.Error(err)
	}
	if err := post(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	if _, ok := errors.AsType[*headgate.InvalidError](post(ctx, 11)); !ok || len(a.calls) != 1 {
		t.Errorf("more than there ever is: %d calls", len(a.calls))
	}
}

// failing is a store that fails when told to.
type failing struct {
	headgate.Store

	fails bool
}

func (f *failing) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if f.fails {
		return headgate.Decision{}, errors.New("the store is gone")
	}
	return f.Store.Take(ctx, r)
}

func (f *failing) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if f.fails {
		return errors.New("the store is gone")
	}
	return f.Store.TakeAll(ctx, rs, ds)
}

func TestTransportErrors(t *testing.T) {
	l := newLimiter(t, "1/s")
	for _, c := range []struct {
		l    *headgate.Limiter
		o    httplimit.TransportOptions
		want string
	}{
		{nil, httplimit.TransportOptions{},
			"headgate: limiter is nil; want one made by headgate.NewLimiter"},
		{l, httplimit.TransportOptions{MaxPause: -time.Second},
			"headgate: MaxPause is -1s; want more than 0 and at most a year, or 0 for an hour"},
		{l, httplimit.TransportOptions{MaxPause: 366 * 24 * time.Hour},
			"headgate: MaxPause is 8784h0m0s; want more than 0 and at most a year, or 0 for an " +
				"hour"},
		{l, httplimit.TransportOptions{Permits: newPermits(t, concurrency.NewMemory(), 1,
			time.Second)},
			"headgate: Period is 0s; want more than 0 and at most a year with Permits, or 0 " +
				"without"},
		{l, httplimit.TransportOptions{Permits: newPermits(t, concurrency.NewMemory(), 1,
			time.Second), Period: 2 * time.Second},
			"headgate: Permits is a limiter with a TTL of 1s; want a TTL of at least the " +
				"Period, because a request without a response keeps its permit"},
		{l, httplimit.TransportOptions{Tokens: &httplimit.TokenCost{Estimate: 1}},
			"headgate: Tokens is {Estimate:1 Input:0 Output:0 Cached:0}; want an Estimate of at " +
				"least 1, and weights from 0 to 1,000,000, one of them above 0"},
		{l, httplimit.TransportOptions{WhenStoreFails: 3},
			"headgate: WhenStoreFails is 3; want Closed or Open"},
		{l, httplimit.TransportOptions{Period: time.Second},
			"headgate: Period is 1s; want more than 0 and at most a year with Permits, or 0 " +
				"without"},
	} {
		if _, err := httplimit.NewTransport(c.l, c.o); err == nil || err.Error() != c.want {
			t.Errorf("error %v; want %s", err, c.want)
		}
	}
}

func TestTargetHost(t *testing.T) {
	for url, want := range map[string]string{
		"http://api.example/a":           "host:api.example",
		"http://API.Example:80/":         "host:api.example",
		"HTTPS://api.example:443":        "host:api.example",
		"http://api.example:443":         "host:api.example:443",
		"https://api.example.:8443/":     "host:api.example:8443",
		"https://user:word@api.example/": "host:api.example",
		"https://[2001:DB8::1]:443/":     "host:[2001:db8::1]",
		"https://[2001:db8::1]:8443/":    "host:[2001:db8::1]:8443",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := httplimit.TargetHost(r); got != want {
			t.Errorf("%s: key %q; want %q", url, got, want)
		}
	}
	if got := httplimit.TargetHost(&http.Request{}); got != "" {
		t.Errorf("no URL: %q", got)
	}
}

// serverOf calls a handler in place of a server.
type serverOf struct{ http.Handler }

func (s serverOf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RemoteAddr = "192.0.2.1:1"
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// A server and a client of this package understand each other: the client is refused
// nothing, though it does not know the limits. Of a sliding log it cannot know in advance:
// that grants the next one at any moment, and so has no t.
func TestTransportMeetsMiddleware(t *testing.T) {
	for texts, want := range map[string]struct {
		took    time.Duration
		refused int
	}{
		"10/10s":                        {30 * time.Second, 0},
		"10/10s burst 1":                {39 * time.Second, 0},
		"10/10s fixed-window":           {30 * time.Second, 0},
		"10/10s stepped":                {30 * time.Second, 0},
		"5/s fixed-window, 10/10s":      {30 * time.Second, 0},
		"5/s burst 1, 20/m sliding-log": {78 * time.Second, 1},
	} {
		t.Run(texts, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := protect(t, newLimiter(t, strings.Split(texts, ", ")...),
					httplimit.Options{})
				transport, err := httplimit.NewTransport(newLimiter(t, "1000/s"),
					httplimit.TransportOptions{Base: serverOf{server}})
				if err != nil {
					t.Fatal(err)
				}
				client, begun, refused := &http.Client{Transport: transport}, time.Now(), 0
				for range 40 {
					if got := call(t.Context(), client,
						"http://api.example/"); !strings.HasSuffix(got, "200") {
						refused++
					}
				}
				if took := time.Since(begun).Round(time.Second); took != want.took ||
					refused != want.refused {
					t.Errorf("%d refused, in %s; want %d in %s", refused, took, want.refused,
						want.took)
				}
			})
		})
	}
}
