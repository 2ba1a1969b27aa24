package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/observe"
)

// What settles a use goes on if the context of its caller has ended: in each store, and through a store
// around one. A new charge does so in memory only, which asks no context.
func TestSettlingGoesOnAfterTheContext(t *testing.T) {
	redis := newStore(t, newClient(t))
	around, err := fallback.New(redis, fallback.Options{Mode: fallback.Closed, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	observed, err := observe.New(redis, observe.Observer{Called: func(context.Context, observe.Call) {}})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		store   headgate.Store
		permits concurrency.Store
		allows  bool
	}{
		"memory":   {headgate.NewMemory(), concurrency.NewMemory(), true},
		"redis":    {redis, redis, false},
		"fallback": {around, redis, false},
		"observed": {observed, redis, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, limits := range [][]headgate.Limit{
				{headgate.FixedWindow(10, 24*time.Hour)},
				{headgate.FixedWindow(10, 24*time.Hour), headgate.PerHour(1).Burst(10)},
			} {
				l, err := headgate.NewLimiter(c.store, limits...)
				if err != nil {
					t.Fatal(err)
				}
				for call, settle := range map[string]func(*headgate.Reservation) error{
					"Charge": func(*headgate.Reservation) error { return errorOf(l.Charge(ended, "k", 3)) },
					"Refund": func(*headgate.Reservation) error { return errorOf(l.Refund(ended, "k", 3)) },
					"Commit": func(r *headgate.Reservation) error { return r.Commit(ended, 2) },
					"Cancel": func(r *headgate.Reservation) error { return r.Cancel(ended) },
				} {
					want := map[string]int64{"Charge": 2, "Refund": 8, "Commit": 8, "Cancel": 10}[call]
					r, err := l.ReserveNow(t.Context(), "k", 5)
					if err != nil {
						t.Fatal(err)
					}
					if err := settle(r); err != nil {
						t.Errorf("%s: %v", call, err)
					}
					if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != want {
						t.Errorf("after %s, %d remain: %v; want %d", call, d.Remaining, err, want)
					}
					if err := l.Reset(t.Context(), "k"); err != nil {
						t.Fatal(err)
					}
				}
				_, err = l.Allow(ended, "k")
				if allows := err == nil; allows != c.allows || !allows && !errors.Is(err, context.Canceled) {
					t.Errorf("Allow: %v", err)
				}
				if err := l.Reset(t.Context(), "k"); err != nil {
					t.Fatal(err)
				}
			}
			slots := newPermits(t, c.permits, 1)
			for range 2 {
				if err := acquirePermit(t, slots).Release(ended); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
}

func errorOf[T any](_ T, err error) error { return err }
