package concurrency_test

import (
	"context"
	"errors"
	"slices"
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

func TestCallersBehindOneThatLeavesAreServed(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}} {
		synctest.Test(t, func(t *testing.T) {
			l := newLimiter(t, concurrency.NewMemory(), 1, time.Hour)
			holder := acquire(t, l)
			left := make(chan error, 3)
			var leave [3]context.CancelFunc
			for i := range leave {
				ctx, cancel := context.WithCancel(t.Context())
				leave[i] = cancel
				go func() {
					_, err := l.Wait(ctx, "k")
					left <- err
				}()
				synctest.Wait()
			}
			served := make(chan error)
			go func() {
				_, err := l.Wait(t.Context(), "k")
				served <- err
			}()
			synctest.Wait()
			for _, i := range order {
				leave[i]()
				if err := <-left; !errors.Is(err, context.Canceled) {
					t.Errorf("caller %d left with %v", i, err)
				}
			}
			release(t, holder)
			if err := <-served; err != nil {
				t.Error(err)
			}
			wantInUse(t, l, 1)
		})
	}
}

func TestCallersThatLeaveWhenAPermitIsFreePassItOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, concurrency.NewMemory(), 1, time.Hour)
		holder := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan *concurrency.Permit, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				p, _ := l.Wait(ctx, "k")
				results <- p
			}()
			synctest.Wait()
		}
		release(t, holder) // the first caller is woken by both
		cancel()
		got := []*concurrency.Permit{<-results}
		if got[0] != nil {
			release(t, got[0])
		}
		if got = append(got, <-results); !slices.ContainsFunc(got, func(p *concurrency.Permit) bool { return p != nil }) {
			t.Error("no caller got the permit")
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

// watched is a store that counts its watchers.
type watched struct {
	concurrency.Store

	watchers int
}

func (s *watched) WatchPermits(key string, wake chan<- struct{}) (stop func()) {
	s.watchers++
	end := s.Store.WatchPermits(key, wake)
	return func() {
		s.watchers--
		end()
	}
}

func TestStoreIsWatchedWhileCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &watched{Store: concurrency.NewMemory()}
		l := newLimiter(t, store, 1, time.Hour)
		for range 2 {
			holder := acquire(t, l)
			for range 3 {
				go func() {
					p, err := l.Wait(t.Context(), "k")
					if err != nil {
						t.Error(err)
						return
					}
					release(t, p)
				}()
			}
			synctest.Wait()
			if store.watchers != 1 {
				t.Errorf("%d watchers while callers wait; want 1", store.watchers)
			}
			release(t, holder)
			synctest.Wait()
			if store.watchers != 0 {
				t.Errorf("%d watchers when no caller waits; want 0", store.watchers)
			}
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

// panicking is a store that panics at the next requests for a permit.
type panicking struct {
	concurrency.Store
	fails atomic.Int64
}

func (f *panicking) AcquirePermit(ctx context.Context, r concurrency.Request) (concurrency.Decision, error) {
	if f.fails.Load() > 0 {
		f.fails.Add(-1)
		panic("store")
	}
	return f.Store.AcquirePermit(ctx, r)
}

// A panic of the store goes on in the caller that is first in line, and the next one is served. A
// panic of the work gives its permit back by a deferred Release.
func TestCallersAreServedAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &panicking{Store: concurrency.NewMemory()}
		l := newLimiter(t, s, 1, time.Hour)
		holder := acquire(t, l)
		var panicked atomic.Int64
		served := make(chan time.Duration, 1)
		start := time.Now()
		wait := func() {
			defer func() {
				if recover() != nil {
					panicked.Add(1)
				}
			}()
			p, err := l.Wait(t.Context(), "k")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = p.Release(t.Context()) }()
			served <- time.Since(start)
			panic("work")
		}
		for range 2 {
			go wait()
			synctest.Wait()
		}
		time.Sleep(time.Second)
		s.fails.Store(1) // the first in line asks, and then the second
		release(t, holder)
		if took := <-served; took != time.Second {
			t.Errorf("served after %s", took)
		}
		synctest.Wait()
		if panicked.Load() != 2 || l.Waiting("k") != 0 {
			t.Errorf("%d panics, %d wait", panicked.Load(), l.Waiting("k"))
		}
		release(t, acquire(t, l))
	})
}
