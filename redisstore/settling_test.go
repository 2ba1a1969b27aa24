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

// What settles a use goes on if the context of its caller has ended: in each store, and through a
// store around one. A new charge does so in memory only, which asks no context.
func TestSettlingGoesOnAfterTheContext(t *testing.T) {
	redis := newStore(t, newClient(t))
	around, err := fallback.New(redis,
		fallback.Options{Mode: fallback.Closed, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	observed, err := observe.New(redis,
		observe.Observer{Called: func(context.Context, observe.Call) {}})
	if err != nil {
		t.Fatal(err)
	}
	day := headgate.FixedWindow(10, 24*time.Hour)
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
			for _, limits := range [][]headgate.Limit{{day}, {day, headgate.PerHour(1).Burst(10)}} {
				l, err := headgate.NewLimiter(c.store, limits...)
				if err != nil {
					t.Fatal(err)
				}
				settleEach(t, l)
				_, err = l.Allow(ended(t), "k")
				if allows := err == nil; allows != c.allows || !allows &&
					!errors.Is(err, context.Canceled) {
					t.Errorf("Allow: %v", err)
				}
				reset(t, l)
			}
			slots := newPermits(t, c.permits, 1)
			for range 2 {
				if err := acquirePermit(t, slots).Release(ended(t)); err != nil {
					t.Errorf("Release: %v", err)
				}
			}
		})
	}
}

// settleEach reserves 5 of 10, and settles that in each way.
func settleEach(t *testing.T, l *headgate.Limiter) {
	t.Helper()
	for name, c := range map[string]struct {
		settle func(context.Context, *headgate.Reservation) error
		want   int64
	}{
		"Charge": {func(ctx context.Context, _ *headgate.Reservation) error {
			_, err := l.Charge(ctx, "k", 3)
			return err
		}, 2},
		"Refund": {func(ctx context.Context, _ *headgate.Reservation) error {
			_, err := l.Refund(ctx, "k", 3)
			return err
		}, 8},
		"Commit": {func(ctx context.Context, r *headgate.Reservation) error {
			return r.Commit(ctx, 2)
		}, 8},
		"Cancel": {func(ctx context.Context, r *headgate.Reservation) error {
			return r.Cancel(ctx)
		}, 10},
	} {
		r, err := l.ReserveNow(t.Context(), "k", 5)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.settle(ended(t), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d, err := l.Peek(t.Context(), "k"); err != nil || d.Remaining != c.want {
			t.Errorf("after %s, %d remain: %v; want %d", name, d.Remaining, err, c.want)
		}
		reset(t, l)
	}
}

// ended returns a context that has ended.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func reset(t *testing.T, l *headgate.Limiter) {
	t.Helper()
	if err := l.Reset(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
}
