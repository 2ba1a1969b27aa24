package httplimit_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// newFleet makes as many clients of one API as there are processes in a fleet, which share
// a Redis.
func newFleet(t *testing.T, a *api, text string, o httplimit.TransportOptions) []*http.Client {
	t.Helper()
	redis := redistest.Start(t)
	var fleet []*http.Client
	for range 3 {
		store, err := redisstore.Open(redis.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		l, err := headgate.NewLimiter(store, parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		fleet = append(fleet, newClient(t, l, a, o))
	}
	return fleet
}

// One process is asked for a pause, and all keep it: calls that cannot wait for its end fail at
// once, others are sent after it. Another host is called meanwhile.
func TestFleetPauses(t *testing.T) {
	t.Parallel()
	a := &api{answer: func(r *http.Request) *http.Response {
		if r.URL.Path == "/pause" {
			return reply(http.StatusTooManyRequests, "Retry-After: "+r.URL.Query().Get("for"))
		}
		return nil
	}}
	fleet := newFleet(t, a, "1000/s", httplimit.TransportOptions{})
	call(t.Context(), fleet[0], "http://api.example/pause?for=3600")
	for i, client := range fleet {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := call(ctx, client, "http://api.example/")
		if !strings.HasSuffix(got, "after the deadline") {
			t.Errorf("process %d calls during the pause: %s", i, got)
		}
		if got := call(ctx, client, "http://other.example/"); got != "200" {
			t.Errorf("process %d calls another host: %s", i, got)
		}
	}
	begun := time.Now()
	call(t.Context(), fleet[0], "http://third.example/pause?for=1")
	var all sync.WaitGroup
	for _, client := range fleet {
		all.Go(func() {
			got := call(t.Context(), client, "http://third.example/")
			if took := time.Since(begun); got != "200" || took < time.Second {
				t.Errorf("%s after %s", got, took)
			}
		})
	}
	all.Wait()
}

// A fleet keeps one limit together, and uses it.
func TestFleetCallsInTurn(t *testing.T) {
	t.Parallel()
	a := &api{}
	fleet := newFleet(t, a, "20/s burst 1", httplimit.TransportOptions{})
	begun := time.Now()
	var all sync.WaitGroup
	for _, client := range fleet {
		for range 7 {
			all.Go(func() {
				if got := call(t.Context(), client, "http://api.example/"); got != "200" {
					t.Error(got)
				}
			})
		}
	}
	all.Wait()
	if took := time.Since(begun); took < time.Second {
		t.Errorf("21 calls at 20 a second took %s; want at least 1s", took)
	}
}
