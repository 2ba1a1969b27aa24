package httplimit_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/httplimit"
)

// A 429 that does not say when to call again is no hot loop: the key backs off, longer each time,
// until another status comes. The fields are those of reports from other clients.
func TestBackOff(t *testing.T) {
	for _, lines := range [][]string{
		nil, // linkinator#681: only the status
		{"Retry-After: 0"},
		{"Retry-After: "},
		{"Retry-After: Fri, 31 Dec 1999 23:59:00 GMT"}, // superglue#699
		// msgraph-sdk-java-core#732
		{"Retry-After: 0,120"},
		{"X-RateLimit-Remaining: 14463", "X-RateLimit-Reset: 4102444800"}, // go-github-ratelimit#38
		{"RateLimit: limit=5, remaining=3, reset=60"},
	} {
		t.Run(fmt.Sprint(lines), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &api{answer: func(r *http.Request) *http.Response {
					if r.URL.Path != "/ok" {
						return reply(http.StatusTooManyRequests, lines...)
					}
					return nil
				}}
				client := newClient(t, newLimiter(t, "1000/s"), a, httplimit.TransportOptions{})
				for _, path := range []string{"/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/ok",
					"/8", "/9"} {
					call(t.Context(), client, "http://api.example"+path)
				}
				wantCalls(t, a, "/0 0s", "/1 1s", "/2 3s", "/3 7s", "/4 15s", "/5 31s", "/6 1m3s",
					"/7 2m3s", "/ok 3m3s",
					"/8 3m3s", "/9 3m4s")
			})
		})
	}
}

// Requests that were sent before a pause do not make it longer.
func TestBackOffOfRequestsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{gate: make(chan struct{})}
		a.answer = func(*http.Request) *http.Response { return reply(http.StatusTooManyRequests) }
		pauses := 0
		client := newClient(t, newLimiter(t, "100/s"), a, httplimit.TransportOptions{
			MaxPause: 1500 * time.Millisecond,
			Observe: func(_ *http.Request, d time.Duration, err error) {
				if pauses++; d > 1500*time.Millisecond || err != nil {
					t.Error(d, err)
				}
			},
		})
		for i := range 20 {
			go call(t.Context(), client, "http://api.example/"+strconv.Itoa(i))
		}
		synctest.Wait()
		close(a.gate)
		synctest.Wait()
		for range 2 {
			call(t.Context(), client, "http://api.example/later")
		}
		if pauses != 3 {
			t.Errorf("%d pauses; want 3", pauses)
		}
		wantCalls(t, &api{calls: a.calls[20:]}, "/later 1s", "/later 2.5s")
	})
}

// A Pause of the options comes first. Where it returns 0, the fields decide.
func TestPauseOfTheOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{answer: func(r *http.Request) *http.Response {
			return reply(http.StatusForbidden, "X-Wait: "+r.URL.Path[1:], "Retry-After: 7")
		}}
		client := newClient(t, newLimiter(t, "1000/s"), a, httplimit.TransportOptions{
			Pause: func(r *http.Response) time.Duration {
				n, _ := strconv.Atoi(r.Header.Get("X-Wait"))
				return time.Duration(n) * time.Second
			},
			MaxPause: 10 * time.Second,
		})
		for _, path := range []string{"/3", "/0", "/-5", "/20", "/1"} {
			call(t.Context(), client, "http://api.example"+path)
		}
		wantCalls(t, a, "/3 0s", "/0 3s", "/-5 10s", "/20 17s", "/1 27s")
	})
}

// Waited reports how long each request that is sent has waited.
func TestWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waited []string
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/pause" {
				return reply(http.StatusServiceUnavailable, "Retry-After: 30")
			}
			return nil
		}}
		client := newClient(t, newLimiter(t, "1/s"), a, httplimit.TransportOptions{
			Cost: func(r *http.Request) int64 { return int64(len(r.URL.Query().Get("cost"))) },
			Waited: func(r *http.Request, d time.Duration) {
				waited = append(waited, r.URL.Path+" "+d.Round(time.Millisecond).String())
			},
		})
		for _, path := range []string{"/0?cost=1", "/free", "/pause?cost=1", "/2?cost=1", "/free"} {
			call(t.Context(), client, "http://api.example"+path)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		call(ctx, client, "http://api.example/late?cost=1")
		want := "[/0 0s /free 0s /pause 1s /2 30s /free 0s]"
		if got := fmt.Sprint(waited); got != want {
			t.Errorf("waited %s; want %s", got, want)
		}
	})
}
