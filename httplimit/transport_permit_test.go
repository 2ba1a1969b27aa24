package httplimit_test

import (
	"context"
	"errors"
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

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/httplimit"
)

func newPermits(
	t *testing.T, store concurrency.Store, n int64, ttl time.Duration,
) *concurrency.Limiter {
	t.Helper()
	l, err := concurrency.New(store, n, ttl)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// late is an API whose responses take 300 ms. There is none to /fail.
type late struct{ *api }

func (l late) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.api.RoundTrip(r)
	time.Sleep(300 * time.Millisecond)
	if r.URL.Path == "/fail" {
		return nil, errors.New("no response")
	}
	return response, err
}

// newPacedClient calls a with n permits per second.
func newPacedClient(t *testing.T, a *api, n int64, ttl time.Duration) *http.Client {
	t.Helper()
	a.start = time.Now()
	transport, err := httplimit.NewTransport(newLimiter(t, "1000/s"), httplimit.TransportOptions{
		Base: late{a}, Permits: newPermits(t, concurrency.NewMemory(), n, ttl), Period: time.Second,
		Cost: func(r *http.Request) int64 { return int64(len(r.URL.Path) - len("/")) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Transport: transport}
}

// A permit is free again a period after the response. A request of cost 0 takes none.
func TestRequestsKeepAPermitUntilAPeriodAfterTheResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		client := newPacedClient(t, a, 2, time.Minute)
		var all sync.WaitGroup
		callEach(t, &all, client, "api.example", 1, 6)
		callEach(t, &all, client, "other.example", 7, 8)
		all.Go(func() { call(t.Context(), client, "http://api.example/") })
		all.Wait()
		slices.Sort(a.calls) // some are made at one moment
		wantCalls(t, a, "/ 0s", "/1 0s", "/2 0s", "/3 1.3s", "/4 1.3s", "/5 2.6s", "/7 0s")
	})
}

// A request without a response may still arrive, so its permit is free again after the TTL only.
// The TTL ends before the response to /2, which is no harm.
func TestARequestWithoutAResponseKeepsItsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		client := newPacedClient(t, a, 1, 5*time.Second)
		for _, path := range []string{"fail", "2", "3"} {
			call(t.Context(), client, "http://api.example/"+path)
		}
		wantCalls(t, a, "/fail 0s", "/2 5s", "/3 6.3s")
	})
}

// A request that does not get a permit in time, or meets a pause, charges nothing and keeps none.
func TestARequestThatIsNotSentKeepsNoPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/pause" {
				return reply(http.StatusTooManyRequests, "Retry-After: 30")
			}
			return nil
		}}
		client := newPacedClient(t, a, 1, time.Minute)
		var all sync.WaitGroup
		all.Go(func() { call(t.Context(), client, "http://api.example/pause") })
		synctest.Wait()
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			if got := call(ctx, client, "http://api.example/1"); !strings.Contains(got,
				"deadline") {
				t.Errorf("sent after its deadline: %s", got)
			}
		})
		synctest.Wait()
		callEach(t, &all, client, "api.example", 2, 3)
		time.Sleep(31 * time.Second) // the end of the pause gives /2 and /3 the same start time
		callEach(t, &all, client, "api.example", 3, 4)
		all.Wait()
		wantCalls(t, a, "/pause 0s", "/2 30.3s", "/3 31.6s")
	})
}

// A server counts a request and closes the connection instead of answering. http.Transport would
// send a GET again, and the API would get two for one permit.
func TestAPacedRequestIsSentOnce(t *testing.T) {
	t.Parallel()
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if body, err := io.ReadAll(r.Body); len(body) > 0 || err != nil || r.ContentLength != 0 ||
			r.TransferEncoding != nil {
			t.Errorf("%s has a body: %q, %v, length %d, %v", r.Method, body, err, r.ContentLength,
				r.TransferEncoding)
		}
		if arrived.Add(1) > 1 {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_ = connection.Close()
		}
	}))
	defer server.Close()
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
		arrived.Store(0)
		base := &http.Transport{}
		transport, err := httplimit.NewTransport(newLimiter(t, "1000/s"),
			httplimit.TransportOptions{
				Base: base, Permits: newPermits(t, concurrency.NewMemory(), 9, time.Minute),
				Period: time.Second,
			})
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Transport: transport}
		for i := range 2 {
			r, err := http.NewRequestWithContext(t.Context(), method, server.URL, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if (err == nil) != (i == 0) {
				t.Errorf("%s number %d: %v", method, i+1, err)
			}
			if err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
				_ = response.Body.Close()
			}
		}
		if n := arrived.Load(); n != 2 {
			t.Errorf("%d %s requests arrived; want 2", n, method)
		}
		base.CloseIdleConnections()
	}
}
