package limittest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/headgate/headgate"
)

// waitersWoken: who waits is woken by what is given back, and by a larger N, long before
// a lease ends.
func waitersWoken(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 1)
	ctx, cancel := patient(t)
	defer cancel()
	holder := begin(t, c, "k")
	for _, wake := range []func(){
		func() { release(t, holder) },
		func() {
			if err := c.SetN(2); err != nil {
				t.Error(err)
			}
		},
	} {
		got := make(chan *headgate.Flight)
		go func() {
			f, err := c.Wait(ctx, "k")
			if err != nil {
				t.Errorf("waited: %v", err)
			}
			got <- f
		}()
		awaitWaiting(t, c, 1)
		wake()
		if holder = <-got; holder == nil {
			return
		}
	}
	wantInFlight(t, c, "k", 2)
}

// waitersInOrder are served as they came, and before those who do not wait.
func waitersInOrder(t *testing.T, s headgate.ConcurrencyStore) {
	const waiters = 8
	c := newConcurrency(t, s, 1)
	ctx, cancel := patient(t)
	defer cancel()
	holder := begin(t, c, "k")
	order := make(chan int, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		wg.Go(func() {
			f, err := c.Wait(ctx, "k")
			if err != nil {
				t.Errorf("waiter %d: %v", i, err)
				return
			}
			order <- i
			if other, _, err := c.Acquire(ctx, "k"); other != nil || err != nil {
				t.Errorf("somebody came in between: %v, %v", other, err)
			}
			if err := f.Release(ctx); err != nil {
				t.Error(err)
			}
		})
		awaitWaiting(t, c, int64(i)+1)
	}
	release(t, holder)
	wg.Wait()
	for i := range waiters {
		if who := <-order; who != i {
			t.Errorf("waiter %d was served as number %d", who, i)
		}
	}
	if n := c.Waiting("k"); n != 0 {
		t.Errorf("%d wait in the end", n)
	}
}

// waitersLeave when their context ends; those behind them are served.
func waitersLeave(t *testing.T, s headgate.ConcurrencyStore) {
	c := newConcurrency(t, s, 1)
	ctx, cancel := patient(t)
	defer cancel()
	holder := begin(t, c, "k")
	var leave [3]context.CancelFunc
	left := make(chan error, len(leave))
	for i := range leave {
		short, cancel := context.WithCancel(ctx)
		leave[i] = cancel
		go func() {
			_, err := c.Wait(short, "k")
			left <- err
		}()
		awaitWaiting(t, c, int64(i)+1)
	}
	served := make(chan *headgate.Flight)
	go func() {
		f, err := c.Wait(ctx, "k")
		if err != nil {
			t.Errorf("the last one: %v", err)
		}
		served <- f
	}()
	awaitWaiting(t, c, 4)
	for _, i := range []int{1, 0, 2} {
		leave[i]()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("a waiter left with %v", err)
		}
	}
	release(t, holder)
	if f := <-served; f != nil {
		release(t, f)
	}
	wantInFlight(t, c, "k", 0)
	if _, err := c.Wait(must(context.WithCancel(ctx)), "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
}

// must gives a context that has ended.
func must(ctx context.Context, cancel context.CancelFunc) context.Context {
	cancel()
	return ctx
}

// waitersOfOthers wait in another Concurrency of the same store.
func waitersOfOthers(t *testing.T, s headgate.ConcurrencyStore) {
	ctx, cancel := patient(t)
	defer cancel()
	holder := begin(t, newConcurrency(t, s, 1), "k")
	var wg sync.WaitGroup
	for range 4 {
		c := newConcurrency(t, s, 1)
		for range 4 {
			wg.Go(func() {
				f, err := c.Wait(ctx, "k")
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		awaitWaiting(t, c, 4)
	}
	release(t, holder)
	wg.Wait()
}
