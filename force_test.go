package headgate

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// What was used already is charged, under each limit of the key, and delays what comes after.
func TestCharge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerMinute(60).Burst(10), FixedWindow(100, time.Hour)))
		if d := must(l.Charge(t.Context(), "k", 4)); !d.Allowed() || d.Remaining != 6 {
			t.Errorf("4 of 10: %+v", d)
		}
		if d := must(l.Charge(t.Context(), "k", 9)); d.RetryAfter != 12*time.Second || d.Remaining != -3 {
			t.Errorf("9 of 6: %+v", d)
		}
		if err := l.WaitN(t.Context(), "k", 1); err != nil {
			t.Error(err)
		}
		if d := must(l.Peek(t.Context(), "k")); d.Remaining != 0 || d.RetryAfter != time.Second {
			t.Errorf("after a Wait that paid the excess back: %+v", d)
		}
		if d := must(l.Charge(t.Context(), "k", math.MaxInt64)); d.RetryAfter != Never || d.Remaining >= 0 {
			t.Errorf("all at once: %+v", d)
		}
		if d := must(l.Refund(t.Context(), "k", math.MaxInt64)); d.ResetAfter != 0 {
			t.Errorf("all refunded: %+v", d)
		}
		for _, n := range []int64{0, -1} {
			if _, err := l.Charge(t.Context(), "k", n); err == nil {
				t.Errorf("%d was charged", n)
			}
		}
	})
}

// A key without limits is charged nothing, and an error of the function is returned.
func TestChargeOfChosenLimits(t *testing.T) {
	l := must(NewLimiterFunc(NewMemorySize(1000), func(context.Context, string) ([]Limit, error) { return nil, nil }))
	if d := must(l.Charge(t.Context(), "k", 5)); d != unlimited {
		t.Errorf("%+v", d)
	}
	l = must(NewLimiterFunc(NewMemorySize(1000), func(context.Context, string) ([]Limit, error) { return nil, ErrFull }))
	if d, err := l.Charge(t.Context(), "k", 5); !errors.Is(err, ErrFull) || d != (Decision{}) {
		t.Errorf("%+v, %v", d, err)
	}
}

// What was used beyond a reservation is charged at once, whether or not it fits.
func TestCommitBeyondAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerSecond(1).Burst(10), FixedWindow(20, time.Hour)))
		r := must(l.Reserve(t.Context(), "k", 5))
		if err := r.Commit(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if d := must(l.Peek(t.Context(), "k")); d.Remaining != 0 || d.RetryAfter < 991*time.Second {
			t.Errorf("1000 of 5 reserved: %+v", d)
		}
	})
}

// A forced request of a new key that shares a slot of a full store is charged only if it fits: other
// keys would pay for it.
func TestForcedRequestsOfAFullStore(t *testing.T) {
	for _, l := range everyAlgorithm(10, time.Hour) {
		m := NewMemorySize(10)
		for i := range 10 {
			ask(t, m, strconv.Itoa(i), l, 10, 0)
		}
		force := func(key string, cost int64) Decision {
			return must(m.Take(t.Context(), Request{Key: key, Limit: l, Cost: cost, Force: true, At: midnight}))
		}
		if d := force("0", 1); d.Remaining != -1 {
			t.Errorf("%v: a key with a slot: %+v", l, d)
		}
		if own(m, "new", l) {
			t.Fatal("the store has room")
		}
		if d := force("new", 7); !d.Allowed() || d.Remaining != 3 {
			t.Errorf("%v: 7 of 10: %+v", l, d)
		}
		for range 3 {
			if d := force("new", 100); d.Allowed() || d.Remaining != 0 {
				t.Errorf("%v: 100 of 3: %+v", l, d)
			}
		}
		r := Request{Limit: l, Cost: 2, Force: true, At: midnight}
		rs, ds := []Request{r, r}, make([]Decision, 2)
		rs[0].Key, rs[1].Key = "new", "newer"
		if err := m.TakeAll(t.Context(), rs, ds); err != nil || ds[0].Remaining != 1 || ds[1].Remaining != 0 || ds[1].Allowed() {
			t.Errorf("%v: two keys that share the slot: %+v, %v", l, ds, err)
		}
		if d := ask(t, m, "other", l, 1, 0); !d.Allowed() {
			t.Errorf("%v: another key that shares it: %+v", l, d)
		}
	}
}
