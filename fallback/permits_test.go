package fallback_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/limittest"
)

// breakablePermits is a store of permits that fails as a breakable does.
type breakablePermits struct {
	concurrency.Store
	*breakable
}

func (b *breakablePermits) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (d concurrency.Decision, err error) {
	err = b.do(ctx, func() error { d, err = b.Store.AcquirePermit(ctx, r); return err })
	return d, err
}

func (b *breakablePermits) RenewPermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	err = b.do(ctx, func() error { held, err = b.Store.RenewPermit(ctx, r); return err })
	return held, err
}

func (b *breakablePermits) ReleasePermit(
	ctx context.Context, r concurrency.Request,
) (held bool, err error) {
	err = b.do(ctx, func() error { held, err = b.Store.ReleasePermit(ctx, r); return err })
	return held, err
}

func newPermits(
	t *testing.T, o fallback.Options,
) (permits concurrency.Store, store *concurrency.Memory, b *breakable) {
	t.Helper()
	b, store = newBreakable(), concurrency.NewMemory()
	return newStore(t, b, o).Permits(&breakablePermits{store, b}), store, b
}

// permitModes are the modes with what four callers get without the store, of three permits.
var permitModes = []struct {
	name    string
	options fallback.Options
	granted int
}{
	{"open", fallback.Options{Mode: fallback.Open}, 4},
	{"share of one", fallback.Options{Mode: fallback.Local, Instances: of(1)}, 3},
	{"share of two", fallback.Options{Mode: fallback.Local, Instances: of(2)}, 1},
	{"share of five", fallback.Options{Mode: fallback.Local, Instances: of(5)}, 1},
	{"share unknown", fallback.Options{Mode: fallback.Local, Instances: of(0)}, 0},
	{"closed", fallback.Options{Mode: fallback.Closed}, 0},
}

func TestPermitsOfAStoreThatWorks(t *testing.T) {
	for _, m := range permitModes {
		t.Run(m.name, func(t *testing.T) {
			limittest.RunPermits(t, func(t *testing.T) concurrency.Store {
				t.Helper()
				permits, _, _ := newPermits(t, m.options)
				return permits
			})
		})
	}
}

// inUse is how many permits of the key "k" a store counts.
func inUse(t *testing.T, s concurrency.Store) int64 {
	t.Helper()
	d, err := s.AcquirePermit(t.Context(), concurrency.Request{Key: "k", Limit: 9, TTL: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return d.InUse
}

// What the mode grants counts in this process, also when the store answers again.
func TestPermitsWithoutTheStore(t *testing.T) {
	for _, m := range permitModes {
		t.Run(m.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				permits, store, b := newPermits(t, m.options)
				b.how.Store(hangs)
				start := time.Now()
				held := acquireFour(t, permits, m.granted)
				if took := time.Since(start); took > 4*50*time.Millisecond {
					t.Errorf("it took %s", took)
				}
				for range 4 { // an outage of two TTLs
					time.Sleep(15 * time.Second)
					each(t, held, (*concurrency.Permit).Renew)
				}
				each(t, held[:m.granted/2], (*concurrency.Permit).Release)
				b.how.Store(works)
				time.Sleep(untilRetry)
				held = held[m.granted/2:]
				each(t, held, (*concurrency.Permit).Renew)
				each(t, held, (*concurrency.Permit).Release)
				if n := inUse(t, store); n != 0 {
					t.Errorf("the store counts %d", n)
				}
			})
		})
	}
}

// acquireFour asks for four of three permits, of which so many are granted. If none is, each call
// is an error.
func acquireFour(
	t *testing.T, permits concurrency.Store, granted int,
) (held []*concurrency.Permit) {
	t.Helper()
	l, err := concurrency.New(permits, 3, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for range 4 {
		p, d, err := l.Acquire(t.Context(), "k")
		if errors.Is(err, fallback.ErrDegraded) != (granted == 0) {
			t.Fatalf("%+v, %v", d, err)
		}
		if p != nil {
			held = append(held, p)
		}
	}
	if len(held) != granted {
		t.Fatalf("%d permits; want %d", len(held), granted)
	}
	return held
}

func each(
	t *testing.T, permits []*concurrency.Permit,
	do func(*concurrency.Permit, context.Context) error,
) {
	t.Helper()
	for _, p := range permits {
		if err := do(p, t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// Without the store, its permits can be neither renewed nor released.
func TestPermitsOfTheStoreInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permits, store, b := newPermits(t, permitModes[1].options)
		l, err := concurrency.New(permits, 3, 30*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		p, _, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		b.how.Store(fails)
		for _, do := range []func(context.Context) error{p.Renew, p.Release} {
			if err := do(t.Context()); !errors.Is(err, fallback.ErrDegraded) {
				t.Error(err)
			}
		}
		b.how.Store(works)
		time.Sleep(untilRetry)
		if err := p.Release(t.Context()); err != nil || inUse(t, store) != 0 {
			t.Errorf("again: %v, %d in use", err, inUse(t, store))
		}
	})
}

// A permit that another instance has released is not in use again because it is renewed.
func TestAReleaseAtAnotherInstance(t *testing.T) {
	for _, m := range permitModes {
		store, b := concurrency.NewMemory(), newBreakable()
		first := newStore(t, b, m.options).Permits(&breakablePermits{store, b})
		other := newStore(t, b, m.options).Permits(&breakablePermits{store, b})
		r := concurrency.Request{Key: "k", ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour}
		next := r
		next.ID[0]++
		if d, err := first.AcquirePermit(t.Context(), r); err != nil || !d.Allowed() {
			t.Fatal(d, err)
		}
		if ok, err := other.ReleasePermit(t.Context(), r); err != nil || !ok {
			t.Fatal(ok, err)
		}
		if d, err := other.AcquirePermit(t.Context(), next); err != nil || !d.Allowed() {
			t.Fatal(d, err)
		}
		if ok, err := first.RenewPermit(t.Context(), r); ok || err != nil || inUse(t, store) != 1 {
			t.Errorf("%s: renewed: %t, %v; %d of 1 in use", m.name, ok, err, inUse(t, store))
		}
	}
}

// A caller that waits gets the permit of the mode that is released.
func TestWaitingForAPermitWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permits, _, b := newPermits(t, permitModes[1].options)
		b.how.Store(fails)
		l, err := concurrency.New(permits, 1, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		first, err := l.Wait(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { _ = first.Release(context.Background()) })
		start := time.Now()
		if _, err := l.Wait(t.Context(), "k"); err != nil || time.Since(start) != time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
