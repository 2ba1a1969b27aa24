package httplimit_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/httplimit"
)

// hanging is a store that does not answer while told to hang, until the context ends.
type hanging struct {
	headgate.Store

	hangs atomic.Bool
}

func (h *hanging) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	}
	return h.Store.Take(ctx, r)
}

// Recording a pause in a store that hangs delays the response by 100 ms. This process keeps the
// pause all the same.
func TestASlowStoreDelaysAResponseByLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{Store: headgate.NewMemorySize(100)}
		l, err := headgate.NewLimiter(store, parse(t, "1000/s"))
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: func(r *http.Request) *http.Response {
			store.hangs.Store(r.URL.Path == "/pause")
			return pausing(r)
		}}
		var errs []error
		client := newClient(t, l, a, httplimit.TransportOptions{
			Observe: func(r *http.Request, pause time.Duration, err error) {
				errs = append(errs, err)
				if pause != 30*time.Second || r.URL.Path != "/pause" {
					t.Errorf("observed a pause of %s for %s, %v", pause, r.URL.Path, err)
				}
			},
		})
		if got := call(t.Context(), client, "http://api.example/pause"); got != "429" {
			t.Error(got)
		}
		if took := time.Since(a.start); took != 100*time.Millisecond {
			t.Errorf("the response came after %s; want 100ms", took)
		}
		if len(errs) != 1 || !errors.Is(errs[0], context.DeadlineExceeded) {
			t.Errorf("observed %v", errs)
		}
		store.hangs.Store(false)
		call(t.Context(), client, "http://api.example/")
		if took := time.Since(a.start).Round(time.Second); took != 30*time.Second {
			t.Errorf("the next call was made after %s", took)
		}
	})
}

// noBooking is a store that does not book ahead.
type noBooking struct{ headgate.Store }

func (n noBooking) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if rs[0].MaxWait > 0 {
		return headgate.ErrNoBooking
	}
	return n.Store.TakeAll(ctx, rs, ds)
}

// Over a store that does not book ahead, requests wait as over any other.
func TestTransportWithoutBooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(noBooking{headgate.NewMemorySize(100)}, parse(t, "1/s"))
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: func(r *http.Request) *http.Response {
			if r.URL.Path == "/pause" {
				time.Sleep(time.Second / 2)
			}
			return pausing(r)
		}}
		client := newClient(t, l, a, httplimit.TransportOptions{})
		for range 3 {
			call(t.Context(), client, "http://api.example/")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second-1)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://api.example/", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Do(r) //nolint:bodyclose // it fails
		if late, ok := errors.AsType[*headgate.DeadlineError](err); !ok ||
			late.Wait != time.Second {
			t.Errorf("a deadline before the wait is over: %v", err)
		}

		time.Sleep(time.Second)
		var all sync.WaitGroup
		all.Go(func() { call(t.Context(), client, "http://api.example/pause") })
		synctest.Wait()
		call(t.Context(), client, "http://api.example/after") // the pause comes while it waits
		all.Wait()
		wantCalls(t, a, "/ 0s", "/ 1s", "/ 2s", "/pause 3s", "/after 33.5s")
	})
}

// counting is a store that counts its calls.
type counting struct {
	headgate.Store

	calls int
}

func (c *counting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	c.calls++
	return c.Store.Take(ctx, r)
}

func (c *counting) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	c.calls++
	return c.Store.TakeAll(ctx, rs, ds)
}

// A request whose tokens are there calls the store once. A request that waits also looks for a
// pause when its turn comes.
func TestCallsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: headgate.NewMemorySize(100)}
		l, err := headgate.NewLimiter(store, parse(t, "1/s"), parse(t, "60/m"))
		if err != nil {
			t.Fatal(err)
		}
		client := newClient(t, l, &api{}, httplimit.TransportOptions{})
		for i, want := range []int{1, 3} {
			call(t.Context(), client, "http://api.example/")
			if store.calls != want {
				t.Errorf("%d calls of the store after request %d, want %d", store.calls, i+1, want)
			}
		}
	})
}

// A process that does not know of a pause reads it as it reserves, and charges nothing for that.
func TestAPauseOfAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, a := newLimiter(t, "1/m burst 3"), &api{answer: pausing}
		call(t.Context(), newClient(t, l, a, httplimit.TransportOptions{}),
			"http://api.example/pause")
		other := newClient(t, l, a, httplimit.TransportOptions{})
		ctx, cancel := context.WithTimeout(t.Context(), 29*time.Second)
		defer cancel()
		call(ctx, other, "http://api.example/late")
		if took := time.Since(a.start); took != 0 {
			t.Errorf("a request that cannot be sent in time failed after %s", took)
		}
		var all sync.WaitGroup
		callEach(t, &all, other, "api.example", 1, 4)
		all.Wait()
		slices.Sort(a.calls) // two are made at one moment
		wantCalls(t, a, "/1 30s", "/2 30s", "/3 1m0s", "/pause 0s")
	})
}
