package headgate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// With another limit, which denies nothing, a limiter decides the same: it is charged, refunded and
// reset with the first.
func TestLimiterMethods(t *testing.T) {
	large := FixedWindow(1000, time.Hour)
	for _, l := range everyAlgorithm(5, time.Minute) {
		for _, limits := range [][]Limit{{l}, {l, large}, {large, l}} {
			synctest.Test(t, func(t *testing.T) {
				limiter := must(NewLimiter(NewMemorySize(100), limits...))
				askEveryMethod(t, limiter, l)
				if len(limits) > 1 {
					d := must(limiter.Store().Take(t.Context(), Request{Key: "K", Limit: large}))
					if d.Remaining != 999 {
						t.Errorf("the other limit: %+v", d)
					}
				}
			})
		}
	}
}

func askEveryMethod(t *testing.T, limiter *Limiter, l Limit) {
	t.Helper()
	ctx := t.Context()
	for i, c := range []struct {
		call      string
		d         func() (Decision, error)
		allowed   bool
		remaining int64
	}{
		{"peek at the initial state", func() (Decision, error) { return limiter.Peek(ctx, "k") },
			true, 5},
		{"allow", func() (Decision, error) { return limiter.Allow(ctx, "k") }, true, 4},
		{"another key", func() (Decision, error) { return limiter.Allow(ctx, "K") }, true, 4},
		{"the empty key", func() (Decision, error) { return limiter.Allow(ctx, "") }, true, 4},
		{"too many at once", func() (Decision, error) { return limiter.AllowN(ctx, "k", 5) },
			false, 4},
		{"all that is left", func() (Decision, error) { return limiter.AllowN(ctx, "k", 4) },
			true, 0},
		{"peek at nothing", func() (Decision, error) { return limiter.Peek(ctx, "k") }, false, 0},
		{"one more", func() (Decision, error) { return limiter.Allow(ctx, "k") }, false, 0},
		{"two back", func() (Decision, error) { return limiter.Refund(ctx, "k", 2) }, true, 2},
		{"one of them", func() (Decision, error) { return limiter.Allow(ctx, "k") }, true, 1},
		{"more back than was taken",
			func() (Decision, error) { return limiter.Refund(ctx, "k", math.MaxInt64) }, true, 5},
		{"no more than all", func() (Decision, error) { return limiter.AllowN(ctx, "k", 5) },
			true, 0},
		{"after which none", func() (Decision, error) { return limiter.Allow(ctx, "k") }, false, 0},
	} {
		d, err := c.d()
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed() != c.allowed || d.Remaining != c.remaining || d.Limit != l {
			t.Errorf("%d, %s: %+v; want allowed %v, remaining %d", i+1, c.call, d, c.allowed,
				c.remaining)
		}
		if (d.RetryAfter == 0) != d.Allowed() {
			t.Errorf("%d, %s: allowed %v and retry after %v", i+1, c.call, d.Allowed(),
				d.RetryAfter)
		}
	}
	if d, _ := limiter.AllowN(ctx, "k", 6); d.Allowed() || d.RetryAfter != Never {
		t.Errorf("6 of at most 5: %+v", d)
	}
	if err := limiter.Reset(ctx, "k"); err != nil {
		t.Fatal(err)
	}
	if d, _ := limiter.Peek(ctx, "k"); d.Remaining != 5 || d.ResetAfter != 0 {
		t.Errorf("after a reset: %+v", d)
	}
	if d, _ := limiter.Peek(ctx, "K"); d.Remaining != 4 {
		t.Errorf("the other key after the reset: %+v", d)
	}
}

func TestStrictest(t *testing.T) {
	a, b := PerSecond(1), PerSecond(2)
	for _, c := range []struct {
		remark string
		ds     []Decision
		want   int
	}{
		{"one alone", []Decision{{Limit: a}}, 0},
		{"a refusal before a grant", []Decision{{Limit: a}, {Limit: b, RetryAfter: 1}}, 1},
		{"the longest wait", []Decision{{Limit: a, RetryAfter: 2}, {Limit: b, RetryAfter: 1}}, 0},
		{"never is the longest", []Decision{{Limit: a, RetryAfter: 2},
			{Limit: b, RetryAfter: Never}}, 1},
		{"the least remaining", []Decision{{Limit: a, Remaining: 2}, {Limit: b, Remaining: 1}}, 1},
		{"remaining counts for nothing in a refusal",
			[]Decision{{Limit: a, Remaining: 0, RetryAfter: 1},
				{Limit: b, Remaining: 5, RetryAfter: 2}}, 1},
		{"of equals the first", []Decision{{Limit: a, Remaining: 1}, {Limit: b, Remaining: 1}}, 0},
	} {
		if got := Strictest(c.ds); got != c.ds[c.want] {
			t.Errorf("%s: %+v", c.remark, got)
		}
	}
}

func TestLimitsOfEachKey(t *testing.T) {
	free, paid := []Limit{FixedWindow(1, time.Hour).Named("plan")},
		[]Limit{FixedWindow(5, time.Hour).Named("plan"), PerHour(3)}
	plans := map[string][]Limit{"free": free, "paid": paid, "unlimited": nil}
	synctest.Test(t, func(t *testing.T) {
		store := NewMemorySize(100)
		limiter, _ := NewLimiterFunc(store, func(_ context.Context, key string) ([]Limit, error) {
			plan, _, _ := strings.Cut(key, ":")
			return plans[plan], nil
		})
		for key, want := range map[string]int{"free:1": 1, "free:2": 1, "paid:1": 3,
			"unlimited:1": 10, "stranger": 10} {
			granted := 0
			for range 10 {
				d, err := limiter.Allow(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				if d.Allowed() {
					granted++
				}
			}
			if granted != want {
				t.Errorf("%s was granted %d, want %d", key, granted, want)
			}
		}
		d, err := limiter.Peek(t.Context(), "unlimited:1")
		if want := (Decision{Limit: Unlimited(), Remaining: math.MaxInt64}); d != want ||
			err != nil {
			t.Errorf("a key without limits: %+v, %v", d, err)
		}
		if err := limiter.Reset(t.Context(), "unlimited:1"); err != nil {
			t.Errorf("a key without limits is reset: %v", err)
		}

		plans["free"] = paid // a key that moves to a better plan keeps what it has consumed
		if d, _ := limiter.Peek(t.Context(), "free:1"); d.Remaining != 3 || d.Limit != paid[1] {
			t.Errorf("after the move: %+v", d)
		}
		if d, _ := store.Take(t.Context(),
			Request{Key: "free:1", Limit: paid[0]}); d.Remaining != 4 {
			t.Errorf("of the new plan's 5, remaining is %d", d.Remaining)
		}
	})
}

func TestBadLimitsOfAKey(t *testing.T) {
	one, other := FixedWindow(1, time.Hour).Named("plan"), FixedWindow(5, time.Hour).Named("plan")
	for what, limits := range map[string][]Limit{"one that is not valid": {{}},
		"two of one name": {one, other}, "one twice": {one, one}} {
		limiter, _ := NewLimiterFunc(
			NewMemorySize(1), func(context.Context, string) ([]Limit, error) { return limits, nil })
		if _, err := limiter.Allow(t.Context(), "k"); !isInvalid(err) {
			t.Errorf("%s gives the error %v", what, err)
		}
	}
	limiter, _ := NewLimiterFunc(
		NewMemorySize(1), func(context.Context, string) (
			[]Limit, error) {
			return []Limit{{}}, nil
		})
	if err := limiter.Reset(t.Context(), "k"); !isInvalid(err) {
		t.Errorf("a reset gives the error %v", err)
	}
}

// broken is a store that cannot say.
type broken struct{ err error }

func (b broken) Take(context.Context, Request) (Decision, error)        { return Decision{}, b.err }
func (b broken) TakeAll(context.Context, []Request, []Decision) error   { return b.err }
func (b broken) Reset(_ context.Context, _ string, _ Limit) (err error) { return b.err }

func TestErrorsOfTheStorePassThrough(t *testing.T) {
	down := errors.New("down")
	one := must(NewLimiter(broken{down}, PerSecond(1)))
	two := must(NewLimiter(broken{down}, PerSecond(1), FixedWindow(1, time.Second)))
	for _, limiter := range []*Limiter{one, two} {
		d, err := limiter.Allow(t.Context(), "k")
		if !errors.Is(err, down) || d != (Decision{}) || d.Allowed() {
			t.Errorf("%+v, %v", d, err)
		}
		if err := limiter.Reset(t.Context(), "k"); !errors.Is(err, down) {
			t.Errorf("reset: %v", err)
		}
	}
}

func TestSetLimitsRefusesAndKeepsWhatItHad(t *testing.T) {
	l := FixedWindow(1, time.Hour)
	limiter := must(NewLimiter(NewMemorySize(10), l))
	for _, limits := range [][]Limit{nil, {Limit{}}, {l, FixedWindow(-1, time.Hour)}, {l, l},
		{l.Named("a"), FixedWindow(2, time.Hour).Named("a")}} {
		if err := limiter.SetLimits(limits...); !isInvalid(err) {
			t.Errorf("%v gives the error %v", limits, err)
		}
	}
	mine := []Limit{FixedWindow(7, time.Hour).Named("mine")}
	if err := limiter.SetLimits(mine...); err != nil {
		t.Fatal(err)
	}
	mine[0] = Limit{} // the caller's slice is the caller's
	if d, err := limiter.Peek(t.Context(), "k"); err != nil || d.Limit.Capacity() != 7 {
		t.Errorf("%+v, %v", d, err)
	}
}

// AllowEach returns for each limit what AllowN would if it were alone, and charges all or
// none.
func TestAllowEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := must(NewLimiter(NewMemorySize(100), PerMinute(3), FixedWindow(2, time.Hour)))
		var room [2]Decision
		for i, c := range []struct {
			n         int64
			allowed   [2]bool
			remaining [2]int64
		}{
			{0, [2]bool{true, true}, [2]int64{3, 2}},
			{2, [2]bool{true, true}, [2]int64{1, 0}},
			{1, [2]bool{true, false}, [2]int64{1, 0}},
			{4, [2]bool{false, false}, [2]int64{1, 0}},
		} {
			ds, err := two.AllowEach(t.Context(), "k", c.n, room[:0])
			if err != nil || len(ds) != 2 {
				t.Fatal(ds, err)
			}
			for j, d := range ds {
				if d.Allowed() != c.allowed[j] || d.Remaining != c.remaining[j] {
					t.Errorf("%d, limit %d: %+v", i, j, d)
				}
			}
		}
		kept, err := two.AllowEach(t.Context(), "k", 0, make([]Decision, 1))
		if err != nil || len(kept) != 3 {
			t.Fatal(kept, err)
		}
		was := kept[1]
		if _, err := two.AllowEach(t.Context(), "another", 1, nil); err != nil || kept[1] != was {
			t.Errorf("%+v became %+v, %v", was, kept[1], err)
		}
		one := must(NewLimiter(NewMemorySize(100), PerMinute(3)))
		before := []Decision{{Remaining: 9}}
		if ds, err := one.AllowEach(t.Context(), "k", 3, before); err != nil || len(ds) != 2 ||
			ds[0].Remaining != 9 || !ds[1].Allowed() {
			t.Errorf("one limit: %+v, %v", ds, err)
		}
		if _, err := one.AllowEach(t.Context(), "k", -1, nil); err == nil ||
			err.Error() != "headgate: n is -1; want at least 0; Refund returns tokens" {
			t.Errorf("a negative cost: %v", err)
		}
		none := must(NewLimiterFunc(
			NewMemorySize(100), func(context.Context, string) ([]Limit, error) { return nil, nil }))
		if ds, err := none.AllowEach(t.Context(), "k", 1, before); err != nil || len(ds) != 1 {
			t.Errorf("no limits: %+v, %v", ds, err)
		}
	})
}

// A store that is nil, a nil pointer or a zero value would panic when it is called.
func TestNoStore(t *testing.T) {
	limit := PerSecond(1)
	for name, with := range map[string]func(Store) error{
		"NewLimiter": func(s Store) error { _, err := NewLimiter(s, limit); return err },
		"NewLimiterFunc": func(s Store) error {
			_, err := NewLimiterFunc(
				s, func(context.Context, string) ([]Limit, error) { return nil, nil })
			return err
		},
		"AllowAll": func(s Store) error {
			_,
				err := AllowAll(t.Context(), s, Request{Limit: limit, Cost: 1})
			return err
		},
	} {
		for _, none := range []Store{nil, (*Memory)(nil), new(Memory)} {
			const want = "headgate: store is nil or a zero value; want a Store, such as NewMemory()"
			if err := with(none); fmt.Sprint(err) != want {
				t.Errorf("%s of %T: %v; want %s", name, none, err, want)
			}
		}
		if err := with(NewMemorySize(1)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
