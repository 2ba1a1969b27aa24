package headgate_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
)

// AllowUpTo grants what is left, charges only that, and says when one token is there.
func TestAllowUpTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cached, err := denycache.New(headgate.NewMemory(), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, store := range []headgate.Store{headgate.NewMemory(), cached} {
			l, err := headgate.NewLimiter(store, headgate.PerSecond(10), headgate.PerHour(23))
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				sleep            time.Duration
				n, granted, left int64
				retry            time.Duration
			}{
				{0, 4, 4, 6, 0},
				{0, 100, 6, 0, 0}, // more than a limit can hold
				{0, 5, 0, 0, 100 * time.Millisecond},
				{0, 1, 0, 0, 100 * time.Millisecond},
				{300 * time.Millisecond, 5, 3, 0, 0}, // a denial of 5 is remembered
				{time.Second, 20, 10, 0, 0},
				{time.Second, 20, 0, 0, 0},
			} {
				time.Sleep(step.sleep)
				n, d, err := l.AllowUpTo(t.Context(), "k", step.n)
				if step.granted == 0 && step.retry == 0 { // the hour has none left
					if n != 0 || d.RetryAfter < 2*time.Minute || d.Limit.Capacity() != 23 {
						t.Errorf("%T: the hour is used up: %d, %+v", store, n, d)
					}
					continue
				}
				if err != nil || n != step.granted || d.Remaining != step.left ||
					d.RetryAfter > step.retry || d.RetryAfter < step.retry-time.Millisecond {
					t.Errorf("%T, %+v: %d, %+v, %v", store, step, n, d, err)
				}
			}
		}
	})
	l, err := headgate.NewLimiter(headgate.NewMemory(), headgate.PerSecond(10))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = l.AllowUpTo(t.Context(), "k", 0)
	if e, ok := errors.AsType[*headgate.InvalidError](err); !ok || e.Field != "n" {
		t.Errorf("up to 0: %v", err)
	}
}

// A deny cache may deny what the store would grant, if tokens came back around it. Then nothing is
// granted, and the call ends.
func TestAllowUpToBesideADenyCache(t *testing.T) {
	memory := headgate.NewMemory()
	cached, err := denycache.New(memory, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := headgate.NewLimiter(cached, headgate.PerDay(10))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.AllowN(t.Context(), "k", 6); err != nil {
			t.Fatal(err)
		}
	}
	if err := memory.Reset(t.Context(), "k", headgate.PerDay(10)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ n, granted int64 }{{6, 0}, {5, 5}, {9, 5}, {5, 0}} {
		n, d, err := l.AllowUpTo(t.Context(), "k", step.n)
		if err != nil || n != step.granted || n == 0 && d.RetryAfter <= 0 {
			t.Errorf("up to %d: %d, %+v, %v", step.n, n, d, err)
		}
	}
}
