package concurrency_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/concurrency"
)

func TestCallersAreServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 8
		l := newLimiter(t, concurrency.NewMemory(), 1, time.Hour)
		holder := acquire(t, l)
		order := make(chan int, callers)
		for i := range callers {
			go func() {
				p, err := l.Wait(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				order <- i
				if other, _, err := l.Acquire(t.Context(), "k"); other != nil || err != nil {
					t.Errorf("a caller that did not wait came before one that did: %v", err)
				}
				release(t, p)
			}()
			synctest.Wait()
		}
		if n := l.Waiting("k"); n != callers {
			t.Errorf("%d wait; want %d", n, callers)
		}
		release(t, holder)
		for i := range callers {
			if caller := <-order; caller != i {
				t.Errorf("caller %d was served as number %d", caller, i)
			}
		}
		synctest.Wait()
		if n := l.Waiting("k"); n != 0 {
			t.Errorf("%d wait in the end", n)
		}
	})
}

func TestCallersGetAPermitAtAReleaseOrExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 2, 10*time.Second)
		a := acquire(t, l)
		time.Sleep(time.Second)
		b := acquire(t, l)
		start := time.Now()
		served := make(chan time.Duration, 3)
		for range 3 {
			go func() {
				if _, err := l.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				served <- time.Since(start)
			}()
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		release(t, b) // the first caller gets its place
		if err := a.Renew(t.Context()); err != nil {
			t.Error(err) // now a expires after 13 seconds, when the permit of the first caller does
		}
		for _, want := range []time.Duration{3 * time.Second, 13 * time.Second, 13 * time.Second} {
			if got := <-served; got != want {
				t.Errorf("a caller was served after %s; want %s", got, want)
			}
		}
	})
}

// silent is a store that notifies no watcher.
type silent struct{ concurrency.Store }

func (silent) WatchPermits(string, chan<- struct{}) func() { return func() {} }

// The first free place is for the caller that waits, though it does not know of it yet; the
// second is for the caller of Acquire.
func TestAcquireComesAfterCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, silent{concurrency.NewMemory()}, 2, 10*time.Second)
		a, b := acquire(t, l), acquire(t, l)
		served := make(chan error)
		go func() {
			_, err := l.Wait(t.Context(), "k")
			served <- err
		}()
		synctest.Wait()
		release(t, a)
		want := concurrency.Decision{Limit: 2, InUse: 1, RetryAfter: 10 * time.Second}
		if p, d, err := l.Acquire(t.Context(), "k"); p != nil || d != want || err != nil {
			t.Errorf("before the caller that waits: %+v, %v; want %+v", d, err, want)
		}
		release(t, b)
		acquire(t, l)
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}

func TestWaitComesAfterCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, silent{concurrency.NewMemory()}, 1, 10*time.Second)
		holder := acquire(t, l)
		order := make(chan int, 2)
		for caller := range 2 {
			go func() {
				if _, err := l.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				order <- caller
			}()
			synctest.Wait()
			if caller == 0 {
				release(t, holder) // the first caller is not notified
			}
		}
		if first, second := <-order, <-order; first != 0 || second != 1 {
			t.Errorf("served %d before %d", first, second)
		}
	})
}

// failing is a store that fails while down is set.
type failing struct {
	concurrency.Store

	down atomic.Bool
}

func (s *failing) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (concurrency.Decision, error) {
	if s.down.Load() {
		return concurrency.Decision{}, errors.New("down")
	}
	return s.Store.AcquirePermit(ctx, r)
}

func TestEachCallerGetsTheErrorOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: concurrency.NewMemory()}
		l := newLimiter(t, store, 1, time.Minute)
		holder := acquire(t, l)
		var failed atomic.Int64
		for range 5 {
			go func() {
				if _, err := l.Wait(t.Context(), "k"); err != nil {
					failed.Add(1)
				}
			}()
		}
		synctest.Wait()
		store.down.Store(true)
		release(t, holder)
		synctest.Wait()
		if failed.Load() != 5 || l.Waiting("k") != 0 {
			t.Errorf("%d of 5 failed, and %d wait", failed.Load(), l.Waiting("k"))
		}
		store.down.Store(false)
		if _, err := l.Wait(t.Context(), "k"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
