package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// far is a store that is a millisecond away, and asks nothing for those who have gone.
type far struct{ headgate.Store }

func (f far) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(time.Millisecond)
	if err := ctx.Err(); err != nil {
		return headgate.Decision{}, err
	}
	return f.Store.Take(ctx, r)
}

func (f far) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	time.Sleep(time.Millisecond)
	return f.Store.TakeAll(ctx, rs, ds)
}

// pausing is an API whose answer to /pause asks for a pause of 30 s.
func pausing(r *http.Request) *http.Response {
	if r.URL.Path == "/pause" {
		return reply(http.StatusTooManyRequests, "Retry-After: 30")
	}
	return nil
}

// Who comes while a line leaves, one after the other, is behind the last of it.
func TestPauseLineIsNotOvertaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(far{headgate.NewMemorySize(100)}, parse(t, "1000/s"))
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: pausing}
		client := newClient(t, l, a, httplimit.TransportOptions{})
		call(t.Context(), client, "http://api.example/pause")
		paused := time.Now()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { call(t.Context(), client, "http://api.example/line") })
			synctest.Wait()
			if i == 0 {
				time.Sleep(5 * time.Millisecond)
			}
		}
		time.Sleep(time.Until(paused.Add(30*time.Second + 5*time.Millisecond)))
		all.Go(func() { call(t.Context(), client, "http://api.example/late") })
		all.Wait()
		if last := a.calls[len(a.calls)-1]; len(a.calls) != 22 || last[:5] != "/late" {
			t.Errorf("calls %q", a.calls)
		}
	})
}

// A pause is kept whatever becomes of the request whose answer asked for it.
func TestPauseOfACanceledRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(far{headgate.NewMemorySize(100)}, parse(t, "1000/s"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		a := &api{answer: func(r *http.Request) *http.Response {
			cancel()
			return pausing(r)
		}}
		client := newClient(t, l, a, httplimit.TransportOptions{})
		call(ctx, client, "http://api.example/pause")
		before := time.Now()
		if call(t.Context(), client, "http://api.example/"); time.Since(before).Round(time.Second) != 30*time.Second {
			t.Errorf("the next call was made after %s", time.Since(before))
		}
	})
}

// Who gives up at the moment at which it becomes the first of a line does not keep the
// others waiting.
func TestGivingUpAtTheEndOfAPause(t *testing.T) {
	for range 100 {
		synctest.Test(t, func(t *testing.T) {
			a := &api{answer: pausing}
			client := newClient(t, newLimiter(t, "1000/s"), a, httplimit.TransportOptions{})
			call(t.Context(), client, "http://api.example/pause")
			var all sync.WaitGroup
			for i := range 4 {
				ctx, cancel := context.WithCancel(t.Context())
				if i == 1 || i == 2 {
					time.AfterFunc(time.Until(a.start.Add(30*time.Second)), cancel)
				}
				all.Go(func() {
					defer cancel()
					r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example/", nil)
					if err != nil {
						t.Error(err)
						return
					}
					answer, err := client.Do(r)
					if err == nil {
						answer.Body.Close()
					} else if !errors.Is(err, context.Canceled) {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			all.Wait()
			if n := len(a.calls); n < 3 || n > 5 {
				t.Errorf("calls %q", a.calls)
			}
		})
	}
}

// At the end of a pause, all requests of its line get their start times at once, so one that starts
// too late fails then, and not when those before it have been sent.
func TestALateRequestFailsAtTheEndOfThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, newLimiter(t, "1/s"), &api{answer: pausing}, httplimit.TransportOptions{})
		call(t.Context(), client, "http://api.example/pause")
		paused := time.Now()
		var all sync.WaitGroup
		callEach(t, &all, client, "api.example", 0, 5)
		ctx, cancel := context.WithDeadline(t.Context(), paused.Add(34500*time.Millisecond))
		defer cancel()
		call(ctx, client, "http://api.example/late")
		if after := time.Since(paused); after != 30*time.Second {
			t.Errorf("it failed after %s, want 30s, when the pause ends", after)
		}
		all.Wait()
	})
}

// A request that is canceled as it learns of a pause gives its start time back.
func TestCanceledAsAPauseIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(far{headgate.NewMemorySize(100)}, parse(t, "1/h"))
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: pausing}
		call(t.Context(), newClient(t, l, a, httplimit.TransportOptions{}), "http://api.example/pause")
		other := newClient(t, l, a, httplimit.TransportOptions{}) // knows of no pause
		for range 500 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel) // when the store answers
			call(ctx, other, "http://api.example/")
			time.Sleep(10 * time.Millisecond)
		}
		d, err := l.Peek(t.Context(), "host:=api.example")
		if err != nil || d.RetryAfter > time.Hour {
			t.Errorf("%+v, %v: start times stay charged", d, err)
		}
	})
}

// Clients that hang up cost nobody: after an overload, as many requests are sent as the limit allows.
// Once, their start times stayed charged, and none was sent for as long as more clients came.
func TestRequestsAfterAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := newClient(t, newLimiter(t, "50/s burst 10"), &api{}, httplimit.TransportOptions{})
		var all sync.WaitGroup
		var sent [2]atomic.Int64
		come := func(phase, n int, every time.Duration) {
			for i := range n {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second+time.Duration(i*37%100)*10*time.Millisecond, cancel)
				all.Go(func() {
					defer cancel()
					if call(ctx, client, "http://api.example/") == "200" {
						sent[phase].Add(1)
					}
				})
				time.Sleep(every)
			}
		}
		come(0, 1200, 10*time.Millisecond)
		come(1, 100, 100*time.Millisecond)
		all.Wait()
		if n, m := sent[0].Load(), sent[1].Load(); n < 600 || m < 95 {
			t.Errorf("%d of 610 sent in the overload, and %d of 100 after it", n, m)
		}
	})
}
