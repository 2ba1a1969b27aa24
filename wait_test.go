package headgate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Callers pass in the order in which they came, each at the first moment that the limits allow, and
// none is refused whose deadline is after it.
func TestCallersWaitInOrder(t *testing.T) {
	for text, want := range map[string][]float64{
		"1/s":                     {0, 1, 2, 3, 4, 5},
		"2/s":                     {0, 0, .5, 1, 1.5, 2},
		"2/s stepped":             {0, 0, 1, 1, 2, 2},
		"2/s fixed-window":        {0, 0, 1, 1, 2, 2},
		"3/2s sliding-log":        {0, 0, 0, 2, 2, 2},
		"3/2s sliding-window":     {0, 0, 0, 8. / 3, 10. / 3, 4},
		"2/s, 3/10s fixed-window": {0, 0, .5, 10, 10, 10.5},
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var limits []Limit
				for part := range strings.SplitSeq(text, ", ") {
					limits = append(limits, must(ParseLimit(part)))
				}
				l := must(NewLimiter(NewMemorySize(1000), limits...))
				start := time.Now().Truncate(10 * time.Second).Add(10 * time.Second)
				time.Sleep(time.Until(start))
				got := make([]float64, len(want))
				var all sync.WaitGroup
				for i := range want {
					all.Go(func() {
						by := start.Add(time.Duration(want[i]*1e9) + time.Millisecond)
						ctx, cancel := context.WithDeadline(t.Context(), by)
						defer cancel()
						if err := l.Wait(ctx, "k"); err != nil {
							t.Error(err)
						}
						got[i] = time.Since(start).Seconds()
					})
					synctest.Wait()
				}
				all.Wait()
				for i := range want {
					if diff := got[i] - want[i]; diff < 0 || diff > 1e-5 {
						t.Fatalf("start times %v; want %v", got, want)
					}
				}
			})
		})
	}
}

// A deadline that cannot be met fails at once and charges nothing.
func TestWaitFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(NewMemorySize(1000), PerSecond(1).Named("api"), Per(100, 24*time.Hour).Named("day")))
		start := time.Now()
		for range 3 {
			go func() { _ = l.Wait(t.Context(), "k") }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		for name, err := range map[string]error{
			"Wait":       l.Wait(ctx, "k"),                           // behind two others
			"ReserveNow": errorOf(l.ReserveNow(t.Context(), "k", 1)), // which have booked nothing
		} {
			want := map[string]time.Duration{"Wait": 3 * time.Second, "ReserveNow": time.Second}[name]
			late, ok := errors.AsType[*DeadlineError](err)
			if !ok || !errors.Is(err, context.DeadlineExceeded) || late.Wait != want {
				t.Errorf("%s: %v", name, err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
		for _, n := range []int64{-1, 0, 2, 101} {
			if _, ok := errors.AsType[*InvalidError](l.WaitN(t.Context(), "k", n)); !ok {
				t.Errorf("n = %d: no error", n)
			}
		}
		cancel()
		if err := l.Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := l.Wait(t.Context(), "k"); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

func errorOf(_ *Reservation, err error) error { return err }

// A caller that is answered late has its place by its arrival, and a panic of the store is
// raised in the caller.
func TestPlacesAreByArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		s := &lateFirst{Store: NewMemorySize(1000), calls: &calls}
		l := must(NewLimiter(s, PerSecond(10).Burst(1)))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := l.Wait(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var got [3]time.Duration
		var all sync.WaitGroup
		for i := range got {
			all.Go(func() {
				if err := l.Wait(ctx, "k"); err != nil {
					t.Error(err)
				}
				got[i] = time.Since(start)
			})
			synctest.Wait()
		}
		all.Wait()
		if got[0] > got[1] || got[1] > got[2] {
			t.Errorf("passed after %v", got)
		}
		calls.Store(-1)
		defer func() {
			if recover() == nil {
				t.Error("the panic was lost")
			}
		}()
		_ = l.Wait(ctx, "k")
	})
}

// lateFirst takes 50 ms to decide its second call, and panics at call 0.
type lateFirst struct {
	Store
	calls *atomic.Int64
}

func (s *lateFirst) Take(ctx context.Context, r Request) (Decision, error) {
	switch s.calls.Add(1) {
	case 0:
		panic("store")
	case 2:
		time.Sleep(50 * time.Millisecond)
	}
	return s.Store.Take(ctx, r)
}

// Callers under other limits are in lines of their own.
func TestPlansHaveLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, pro := Per(1, 10*time.Second).Named("free"), PerSecond(1).Named("pro")
		s := NewMemorySize(1000)
		fast, slow := must(NewLimiter(s, pro)), must(NewLimiter(s, free))
		start := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = fast.Wait(ctx, "k") }()
			synctest.Wait()
		}
		for range 2 {
			go func() { _ = slow.Wait(t.Context(), "k") }()
			synctest.Wait()
		}
		leave()
		if err := slow.Wait(t.Context(), "k"); err != nil || time.Since(start) != 20*time.Second {
			t.Errorf("the third of the free plan passed after %s, error %v", time.Since(start), err)
		}
	})
}

// The last of many limits distinguishes lines, too.
func TestPlansOfManyLimitsHaveLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type plan struct{}
		plans := make(map[string][]Limit)
		for _, last := range []string{"1/m", "1/h"} {
			for i := range int64(4) {
				plans[last] = append(plans[last], PerSecond(100+i))
			}
			plans[last] = append(plans[last], must(ParseLimit(last)))
		}
		l := must(NewLimiterFunc(NewMemorySize(1000), func(ctx context.Context, _ string) ([]Limit, error) {
			name, _ := ctx.Value(plan{}).(string)
			return plans[name], nil
		}))
		minute, hour := context.WithValue(t.Context(), plan{}, "1/m"), context.WithValue(t.Context(), plan{}, "1/h")
		must(l.Allow(minute, "k"))
		must(l.Allow(hour, "k"))
		start := time.Now()
		first, leave := context.WithCancel(minute)
		go func() { _ = l.Wait(first, "k") }()
		synctest.Wait()
		time.AfterFunc(time.Second, leave)
		if err := l.Wait(hour, "k"); err != nil || time.Since(start) != time.Hour {
			t.Errorf("passed after %s, error %v", time.Since(start), err)
		}
	})
}

// Callers wait for several requests together, in one line if these are the same except for their costs.
func TestWaitAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(1000)
		l := must(NewLimiter(m, PerHour(1))) // which does not matter
		requests := func(user string, n int64) []Request {
			return []Request{
				{Key: "org", Limit: PerSecond(10), Cost: 4 + n},
				{Key: user, Limit: PerMinute(60).Burst(1), Cost: 1 + n},
			}
		}
		start, passed := time.Now(), make([]time.Duration, 0, 6)
		var all sync.WaitGroup
		var mu sync.Mutex
		wait := func(rs ...Request) {
			all.Go(func() {
				if _, err := l.WaitAll(t.Context(), rs...); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				passed = append(passed, time.Since(start))
			})
			synctest.Wait()
		}
		for range 3 {
			wait(requests("ann", 0)...)
		}
		if !l.lines.Has(line(requests("ann", 0), 1)) || l.lines.Has(line(requests("bob", 0), 1)) {
			t.Error("the line is not that of the requests")
		}
		wait(requests("bob", 0)...) // what ann waits for is not charged yet
		all.Wait()
		want := []time.Duration{0, 0, time.Second, 2 * time.Second}
		if !slices.Equal(passed, want) {
			t.Errorf("passed after %v; want %v", passed, want)
		}
		if d := must(m.Take(t.Context(), Request{Key: "org", Limit: PerSecond(10)})); d.Remaining != 6 {
			t.Errorf("org: %+v", d)
		}

		soon, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		_, err := l.WaitAll(soon, requests("ann", 0)...)
		if late, ok := errors.AsType[*DeadlineError](err); !ok || late.Wait != time.Second {
			t.Errorf("a start after the deadline: %v", err)
		}
		if d := must(m.Take(t.Context(), Request{Key: "org", Limit: PerSecond(10)})); d.Remaining != 6 {
			t.Errorf("after a late start, org: %+v", d)
		}
		if _, err := l.WaitAll(t.Context()); err != nil {
			t.Errorf("no requests: %v", err)
		}
	})
}

// Callers of one line pass in their order, whatever their costs: those are equal for all requests
// of a caller, or differ by the same numbers.
func TestWaitAllKeepsTheOrderWhateverTheCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(NewLimiter(&networkStore{Store: NewMemorySize(1000), there: time.Millisecond}, PerHour(1)))
		var passed []int
		var mu sync.Mutex
		var all sync.WaitGroup
		for i, n := range []int64{5, 3, 1, 5, 2, 2, 4, 1} {
			all.Go(func() {
				rs := []Request{
					{Key: "a", Limit: PerSecond(5), Cost: n}, {Key: "b", Limit: PerSecond(50), Cost: n + 20},
				}
				if _, err := l.WaitAll(t.Context(), rs...); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				passed = append(passed, i)
			})
			synctest.Wait()
		}
		all.Wait()
		if !slices.IsSorted(passed) {
			t.Errorf("passed in the order %v", passed)
		}
	})
}

// With headroom, a caller waits until others leave it, and takes nothing that was kept for them.
func TestWaitAllWithHeadroom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, limit := NewMemorySize(1000), PerSecond(10)
		l := must(NewLimiter(m, limit))
		must(l.AllowN(t.Context(), "k", 10))
		start := time.Now()
		if _, err := l.WaitAll(t.Context(), Request{Key: "k", Limit: limit, Cost: 1, Headroom: 4}); err != nil {
			t.Error(err)
		}
		if d := must(l.Peek(t.Context(), "k")); time.Since(start) != time.Second/2 || d.Remaining != 4 {
			t.Errorf("passed after %s, and left %+v", time.Since(start), d)
		}
	})
}

// A caller that leaves while a store across a network answers gives its start time back.
func TestACallerThatLeavesBeforeTheAnswerGivesItsStartBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &networkStore{Store: NewMemorySize(1000), back: 10 * time.Millisecond}
		l := must(NewLimiter(s, PerHour(1)))
		must(l.Reserve(t.Context(), "k", 1))
		for name, leaves := range map[string]func(ctx context.Context) error{
			"Wait":    func(ctx context.Context) error { return l.Wait(ctx, "k") },
			"Reserve": func(ctx context.Context) error { return errorOf(l.Reserve(ctx, "k", 1)) },
		} {
			ctx, leave := context.WithCancel(t.Context())
			time.AfterFunc(5*time.Millisecond, leave)
			if err := leaves(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second)
			if d := must(l.Peek(t.Context(), "k")); d.RetryAfter > time.Hour {
				t.Errorf("%s: the start time stays charged: %+v", name, d)
			}
		}
	})
}
