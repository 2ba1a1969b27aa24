package limittest_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/observe"
)

// noBooking is a store that does not book ahead.
type noBooking struct{ *headgate.Memory }

func (s noBooking) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if err := r.Validate(); err != nil || r.MaxWait > 0 {
		return headgate.Decision{}, cmp.Or(err, headgate.ErrNoBooking)
	}
	return s.Memory.Take(ctx, r)
}

func (s noBooking) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if err := headgate.ValidateAll(rs, ds); err != nil {
		return err
	}
	if slices.ContainsFunc(rs, func(r headgate.Request) bool { return r.MaxWait > 0 }) {
		return headgate.ErrNoBooking
	}
	return s.Memory.TakeAll(ctx, rs, ds)
}

func TestStoreWithoutBooking(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return noBooking{headgate.NewMemory()} })
}

func must[T any](t *testing.T, v T, err error) T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestWaitWithoutBooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, err := headgate.NewLimiter(noBooking{headgate.NewMemory()}, headgate.PerSecond(1))
		must(t, l, err)
		start := time.Now()
		done := make(chan error, 3)
		for range cap(done) {
			go func() { done <- l.Wait(t.Context(), "k") }()
		}
		for i := range cap(done) {
			if err := <-done; err != nil || time.Since(start) != time.Duration(i)*time.Second {
				t.Errorf("caller %d: %v after %s", i, err, time.Since(start))
			}
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second-1)
		defer cancel()
		late, ok := errors.AsType[*headgate.DeadlineError](l.Wait(ctx, "k"))
		if !ok || late.Wait != time.Second || ctx.Err() != nil {
			t.Errorf("a deadline before the wait is over: %v, %v", late, ctx.Err())
		}
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second/2, leave)
		if err := l.Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that leaves: %v", err)
		}
		if _, ok := errors.AsType[*headgate.InvalidError](l.WaitN(t.Context(), "k", 2)); !ok {
			t.Error("a cost above the burst waits")
		}
		if _, err := l.Reserve(t.Context(), "k", 1); !errors.Is(err, headgate.ErrNoBooking) {
			t.Errorf("Reserve: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := l.ReserveNow(t.Context(), "k", 1); err != nil {
			t.Errorf("ReserveNow: %v", err)
		}
	})
}

func TestWrappersPassOnThatAStoreDoesNotBook(t *testing.T) {
	store := noBooking{headgate.NewMemory()}
	failing, err := fallback.New(store, fallback.Options{Mode: fallback.Open, Failures: 1})
	must(t, failing, err)
	cached, err := denycache.New(store, 0)
	must(t, cached, err)
	leased, err := lease.New(store, lease.Options{})
	must(t, leased, err)
	observed, err := observe.New(store, observe.Observer{})
	must(t, observed, err)
	for _, s := range []headgate.Store{failing, cached, leased, observed} {
		r := headgate.Request{Key: "k", Limit: headgate.PerSecond(1), Cost: 1, MaxWait: time.Second}
		if _, err := s.Take(t.Context(), r); !errors.Is(err, headgate.ErrNoBooking) {
			t.Errorf("%T: Take: %v", s, err)
		}
		rs := []headgate.Request{r, {Key: "other", Limit: r.Limit, Cost: 1}}
		err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2))
		if !errors.Is(err, headgate.ErrNoBooking) {
			t.Errorf("%T: TakeAll: %v", s, err)
		}
	}
	if n := failing.Stats().Failures; n != 0 {
		t.Errorf("the circuit counts %d failures", n)
	}
}
