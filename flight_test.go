package headgate

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func begin(t *testing.T, c *Concurrency, key string) *Flight {
	t.Helper()
	f, d, err := c.Acquire(t.Context(), key)
	if err != nil || f == nil {
		t.Fatalf("not granted: %+v, %v", d, err)
	}
	return f
}

// TestFlightInTime lets a holder die: its place comes back when the lease ends, neither
// before nor after, and the dead one is told if it turns out to be alive.
func TestFlightInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(NewConcurrency(NewMemoryConcurrency(), 1, 10*time.Second))
		dead := begin(t, c, "k")
		time.Sleep(4 * time.Second)
		if _, d, _ := c.Acquire(t.Context(), "k"); d.RetryAfter != 6*time.Second || d.InFlight != 1 || d.N != 1 || d.Allowed() {
			t.Errorf("after 4 s: %+v", d)
		}
		start := time.Now()
		next, err := c.Wait(t.Context(), "k")
		if waited := time.Since(start); err != nil || waited != 6*time.Second {
			t.Errorf("waited %s, error %v; want 6s", waited, err)
		}
		for range 2 {
			if err := dead.Renew(t.Context()); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("renewed after its end: %v", err)
			}
			if err := dead.Release(t.Context()); !errors.Is(err, ErrLeaseLost) {
				t.Errorf("released after its end: %v", err)
			}
		}
		if d, _ := c.Peek(t.Context(), "k"); d.InFlight != 1 {
			t.Errorf("the dead one gave back what was another's: %+v", d)
		}
		if err := next.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitersInTime: who is first in line gets the first place, by a release or by the end of
// a lease, and a renewal puts that off.
func TestWaitersInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(NewConcurrency(NewMemoryConcurrency(), 2, 10*time.Second))
		a := begin(t, c, "k")
		time.Sleep(time.Second)
		b := begin(t, c, "k")
		start := time.Now()
		type arrival struct {
			who   int
			after time.Duration
		}
		arrivals := make(chan arrival, 3)
		for who := range 3 {
			go func() {
				if _, err := c.Wait(t.Context(), "k"); err != nil {
					t.Error(err)
				}
				arrivals <- arrival{who, time.Since(start)}
			}()
			synctest.Wait()
		}
		time.Sleep(3 * time.Second)
		if err := errors.Join(b.Release(t.Context()), a.Renew(t.Context())); err != nil { // 0 gets b's place, a lasts until 13
			t.Error(err)
		}
		for _, want := range []arrival{{0, 3 * time.Second}, {1, 13 * time.Second}, {2, 13 * time.Second}} {
			if got := <-arrivals; got.after != want.after || got.who != want.who && want.after < 13*time.Second {
				t.Errorf("%+v; want %+v", got, want)
			}
		}
	})
}

// TestKeep holds a flight for six leases, and gives it back.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(NewConcurrency(NewMemoryConcurrency(), 1, 10*time.Second))
		f := begin(t, c, "k")
		kept, cancel := f.Keep(t.Context())
		defer cancel()
		time.Sleep(time.Minute)
		if d, _ := c.Peek(t.Context(), "k"); d.InFlight != 1 || kept.Err() != nil {
			t.Errorf("after six leases: %+v, %v", d, context.Cause(kept))
		}
		if err := f.Release(t.Context()); err != nil {
			t.Error(err)
		}
		<-kept.Done()
		if err := context.Cause(kept); !errors.Is(err, ErrReleased) {
			t.Errorf("ended by %v", err)
		}
	})
}

// TestKeepNoMore: without a keeper, the lease ends.
func TestKeepNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(NewConcurrency(NewMemoryConcurrency(), 1, 10*time.Second))
		f := begin(t, c, "k")
		_, cancel := f.Keep(t.Context())
		time.Sleep(7 * time.Second) // it was renewed after 3.3 and 6.7
		cancel()
		start := time.Now()
		if _, err := c.Wait(t.Context(), "k"); err != nil {
			t.Error(err)
		}
		if waited := time.Since(start).Round(time.Second); waited != 10*time.Second {
			t.Errorf("waited %s after the last renewal at 6.7 s; want 9.7", waited)
		}
	})
}

// deaf is a store that has stopped answering.
type deaf struct {
	ConcurrencyStore
	hang bool // until the context ends, instead of an error at once
	asks int
}

func (b *deaf) RenewFlight(ctx context.Context, _ FlightRequest) (bool, error) {
	b.asks++
	if b.hang {
		<-ctx.Done()
	}
	return false, errors.New("no answer")
}

// TestKeepWithoutAnAnswer: who keeps is told when the lease may have ended, not later, and
// has asked a few times until then.
func TestKeepWithoutAnAnswer(t *testing.T) {
	for _, hang := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := &deaf{ConcurrencyStore: NewMemoryConcurrency(), hang: hang}
			f := begin(t, must(NewConcurrency(store, 1, 10*time.Second)), "k")
			start := time.Now()
			kept, cancel := f.Keep(t.Context())
			defer cancel()
			<-kept.Done()
			if err, after := context.Cause(kept), time.Since(start); !errors.Is(err, ErrLeaseLost) || after != 10*time.Second {
				t.Errorf("ended by %v after %s", err, after)
			}
			if store.asks < 1 || store.asks > 40 || !hang && store.asks < 4 {
				t.Errorf("asked %d times", store.asks)
			}
		})
	}
}

// TestKeepLost: another took the place, because the store's clock jumped.
func TestKeepLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := NewMemoryConcurrency()
		f := begin(t, must(NewConcurrency(store, 1, 10*time.Second)), "k")
		kept, cancel := f.Keep(t.Context())
		defer cancel()
		must(store.AcquireFlight(t.Context(), FlightRequest{Key: "k", ID: FlightID{1}, N: 1, Lease: time.Hour, At: time.Now().Add(time.Minute)}))
		start := time.Now()
		<-kept.Done()
		if err, after := context.Cause(kept), time.Since(start); !errors.Is(err, ErrLeaseLost) || after > 4*time.Second {
			t.Errorf("ended by %v after %s", err, after)
		}
	})
}

// forgetful is a store whose answers to releases get lost.
type forgetful struct{ ConcurrencyStore }

func (s forgetful) ReleaseFlight(ctx context.Context, r FlightRequest) (bool, error) {
	_, err := s.ConcurrencyStore.ReleaseFlight(ctx, r)
	return false, errors.Join(err, errors.New("no answer"))
}

// TestReleaseWithoutAnAnswer: to release again after an error is safe, and then it is certain.
func TestReleaseWithoutAnAnswer(t *testing.T) {
	store := NewMemoryConcurrency()
	c := must(NewConcurrency(forgetful{store}, 2, time.Hour))
	a, b := begin(t, c, "k"), begin(t, c, "k")
	if err := a.Release(t.Context()); err == nil || errors.Is(err, ErrReleased) || errors.Is(err, ErrLeaseLost) {
		t.Errorf("no answer gave %v", err)
	}
	a.store, b.store = store, store
	for _, want := range []error{nil, ErrReleased, ErrReleased} {
		if err := a.Release(t.Context()); !errors.Is(err, want) {
			t.Errorf("again: %v; want %v", err, want)
		}
	}
	if err := b.Release(t.Context()); err != nil {
		t.Errorf("the other one: %v", err)
	}
}

// silent is a store that wakes nobody.
type silent struct{ ConcurrencyStore }

func (silent) WatchFlights(string, chan<- struct{}) func() { return func() {} }

// TestAcquireBehindWaiters: a place that is free is for who waits, though he does not know
// of it yet; of two places, the second is for who asks.
func TestAcquireBehindWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := must(NewConcurrency(silent{NewMemoryConcurrency()}, 2, 10*time.Second))
		a, b := begin(t, c, "k"), begin(t, c, "k")
		served := make(chan error)
		go func() {
			_, err := c.Wait(t.Context(), "k")
			served <- err
		}()
		synctest.Wait()
		if err := a.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if f, d, err := c.Acquire(t.Context(), "k"); f != nil || d.N != 2 || d.InFlight != 1 || d.RetryAfter != 10*time.Second || err != nil {
			t.Errorf("before who waits: %+v, %v", d, err)
		}
		if err := b.Release(t.Context()); err != nil {
			t.Error(err)
		}
		begin(t, c, "k")
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
}
