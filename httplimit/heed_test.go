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

// hanging is a store that does not answer while told to hang, until the context ends.
type hanging struct {
	headgate.Store

	hangs atomic.Bool
	asked atomic.Int64 // how often, while it hung
}

func (h *hanging) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if h.hangs.Load() {
		h.asked.Add(1)
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	}
	return h.Store.Take(ctx, r)
}

// An answer is not held back for a store that hangs, its pause is kept by this process all
// the same, and what became of the store is told when it is known.
func TestAnswerIsNotHeldBack(t *testing.T) {
	for name, c := range map[string]struct{ timeout, want time.Duration }{
		"a long time left":   {time.Hour, 100 * time.Millisecond},
		"until the deadline": {50 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &hanging{Store: headgate.NewMemory(100)}
				l, err := headgate.NewLimiter(store, parse(t, "1000/s"))
				if err != nil {
					t.Fatal(err)
				}
				a := &api{answer: func(r *http.Request) *http.Response {
					store.hangs.Store(r.URL.Path == "/pause")
					return pausing(r)
				}}
				var told []error
				client := newClient(t, l, a, httplimit.TransportOptions{FailOpen: true, Observe: func(r *http.Request, pause time.Duration, err error) {
					if told = append(told, err); pause != 30*time.Second || r.URL.Path != "/pause" {
						t.Errorf("told of %s for %s, %v", pause, r.URL.Path, err)
					}
				}})
				ctx, cancel := context.WithTimeout(t.Context(), c.timeout)
				defer cancel()
				if got := call(ctx, client, "http://api.example/pause"); got != "429" {
					t.Error(got)
				}
				if took := time.Since(a.start); took != c.want {
					t.Errorf("the answer came after %s; want %s", took, c.want)
				}
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if len(told) != 1 || !errors.Is(told[0], context.DeadlineExceeded) {
					t.Errorf("told of %v", told)
				}
				store.hangs.Store(false)
				call(t.Context(), client, "http://api.example/")
				if took := time.Since(a.start).Round(time.Second); took != 30*time.Second {
					t.Errorf("the next call was made after %s", took)
				}
			})
		})
	}
}

// However many answers ask for pauses, a store that hangs is asked by few at once.
func TestFewAskAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &hanging{Store: headgate.NewMemory(100)}
		l, err := headgate.NewLimiter(store, parse(t, "1000/s"))
		if err != nil {
			t.Fatal(err)
		}
		a := &api{answer: pausing, gate: make(chan struct{})}
		var refused atomic.Int64
		client := newClient(t, l, a, httplimit.TransportOptions{Observe: func(_ *http.Request, _ time.Duration, err error) {
			if !errors.Is(err, context.DeadlineExceeded) {
				refused.Add(1)
			}
		}})
		var all sync.WaitGroup
		for range 300 {
			all.Go(func() { call(t.Context(), client, "http://api.example/pause") })
		}
		synctest.Wait()
		store.hangs.Store(true)
		close(a.gate)
		all.Wait()
		if took := time.Since(a.start); store.asked.Load() != 256 || refused.Load() != 44 || took != 100*time.Millisecond {
			t.Errorf("the store was asked %d times, %d were refused, after %s", store.asked.Load(), refused.Load(), took)
		}
		time.Sleep(10 * time.Second)
	})
}

// A limit named as somebody might name one is not taken for a pause.
func TestLimitNamedPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &api{}
		client := newClient(t, newLimiter(t, "pause=1/s"), a, httplimit.TransportOptions{})
		for range 3 {
			call(t.Context(), client, "http://api.example/")
		}
		wantCalls(t, a, "/ 0s", "/ 1s", "/ 2s")
	})
}

// lookFails is a store whose look at a pause fails as soon as it is told to.
type lookFails struct {
	headgate.Store

	begun atomic.Bool
	fails func(ctx context.Context) error
}

func (l *lookFails) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if l.begun.Load() && r.Cost == 0 {
		if err := l.fails(ctx); err != nil {
			return headgate.Decision{}, err
		}
	}
	return l.Store.Take(ctx, r)
}

// A turn after which the look fails is given back: nothing was sent.
func TestTurnIsGivenBackIfTheLookFails(t *testing.T) {
	gone := errors.New("the store is gone")
	for name, fails := range map[string]func(ctx context.Context) error{
		"store": func(context.Context) error { return gone },
		"ctx":   func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &lookFails{Store: headgate.NewMemory(100), fails: fails}
				limit := parse(t, "day=1/s burst 2")
				l, err := headgate.NewLimiter(store, limit)
				if err != nil {
					t.Fatal(err)
				}
				a := &api{}
				client := newClient(t, l, a, httplimit.TransportOptions{})
				for range 2 {
					call(t.Context(), client, "http://api.example/")
				}
				time.AfterFunc(time.Second/2, func() { store.begun.Store(true) })
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				call(ctx, client, "http://api.example/")
				if len(a.calls) != 2 {
					t.Errorf("calls %q", a.calls)
				}
				synctest.Wait()
				d, err := store.Store.Take(t.Context(), headgate.Request{Key: "host:=api.example", Limit: limit})
				if want := int64(time.Since(a.start) / time.Second); err != nil || d.Remaining != min(want, 2) {
					t.Errorf("%d remain, %v; want %d", d.Remaining, err, min(want, 2))
				}
			})
		})
	}
}
