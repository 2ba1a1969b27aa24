package headgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func newTestLimiter(t *testing.T, texts ...string) *Limiter {
	t.Helper()
	var limits []Limit
	for _, text := range texts {
		limits = append(limits, must(ParseLimit(text)))
	}
	return must(NewLimiter(NewMemory(1000), limits...))
}

// Waiters go in the order in which they came, each at the first moment that the limits allow.
func TestWaitersGoInTurn(t *testing.T) {
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
				l := newTestLimiter(t, strings.Split(text, ", ")...)
				start := time.Now().Truncate(10 * time.Second).Add(10 * time.Second)
				time.Sleep(time.Until(start))
				got := make([]float64, len(want))
				var all sync.WaitGroup
				for i := range want {
					all.Go(func() {
						if err := l.Wait(t.Context(), "k"); err != nil {
							t.Error(err)
						}
						got[i] = time.Since(start).Seconds()
					})
					synctest.Wait()
				}
				all.Wait()
				for i := range want {
					if diff := got[i] - want[i]; diff < 0 || diff > 1e-5 {
						t.Fatalf("turns at %v; want %v", got, want)
					}
				}
			})
		})
	}
}

// Of those who wait some leave: their turns go to those behind them, and the state is as if
// they had never come.
func TestWhoLeavesGivesTheTurnToThoseBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(t, "1/s")
		start := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		var passed []string
		for i := range 6 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i == 2 || i == 4 {
					time.AfterFunc(1500*time.Millisecond, cancel)
				}
				err := l.Wait(ctx, "k")
				if i == 2 || i == 4 {
					if !errors.Is(err, context.Canceled) || time.Since(start) != 1500*time.Millisecond {
						t.Errorf("waiter %d left after %s with %v", i, time.Since(start), err)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				passed = append(passed, fmt.Sprint(i, time.Since(start).Round(time.Millisecond)))
			})
			synctest.Wait()
		}
		all.Wait()
		if got := fmt.Sprint(passed); got != "[0 0s 1 1s 3 2s 5 3s]" {
			t.Error(got)
		}
		if d := must(l.Peek(t.Context(), "k")); d.RetryAfter.Round(time.Millisecond) != time.Second {
			t.Errorf("after the last: %+v", d)
		}
		synctest.Wait()
		l.lines.mu.Lock()
		defer l.lines.mu.Unlock()
		if len(l.lines.of) != 0 {
			t.Errorf("%d lines are left", len(l.lines.of))
		}
	})
}

// A deadline that cannot be met fails at once and charges nothing.
func TestWaitFailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(t, "api=1/s", "day=100/d")
		start := time.Now()
		for range 3 {
			go func() { _ = l.Wait(t.Context(), "k") }()
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		err := l.Wait(ctx, "k")
		late, ok := errors.AsType[*DeadlineError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || late.Wait.Round(time.Millisecond) != 3*time.Second || late.Limit.Name() != "api" {
			t.Errorf("%#v", err)
		}
		if time.Since(start) != 0 {
			t.Errorf("it took %s", time.Since(start))
		}
		cancel()
		if err := l.Wait(ctx, "k"); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		for _, n := range []int64{-1, 0, 2, 101} {
			if _, ok := errors.AsType[*InvalidError](l.WaitN(t.Context(), "k", n)); !ok {
				t.Errorf("n = %d: no error", n)
			}
		}
		if err := l.WaitN(t.Context(), "k", 2); err.Error() != "headgate: n is 2; want at most 1, which is all that api grants at once" {
			t.Error(err)
		}
		if err := l.Wait(t.Context(), "k"); err != nil || time.Since(start).Round(time.Millisecond) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
	})
}

// Whatever some of many do who wait, those who pass keep the limit, and it is used.
func TestManyWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(t, "100/s burst 1")
		start := time.Now()
		var all sync.WaitGroup
		var mu sync.Mutex
		passes := 0
		for range 2000 {
			all.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if rand.IntN(2) == 0 {
					time.AfterFunc(time.Duration(rand.Int64N(int64(20*time.Second))), cancel)
				}
				if l.Wait(ctx, "k") == nil {
					mu.Lock()
					defer mu.Unlock()
					passes++
					if most := 1 + int(time.Since(start)/(10*time.Millisecond)); passes > most {
						t.Errorf("%d passes within %s", passes, time.Since(start))
					}
				}
			})
		}
		all.Wait()
		if least := int(time.Since(start) / (10 * time.Millisecond)); passes < least {
			t.Errorf("%d passes within %s", passes, time.Since(start))
		}
	})
}

// A reservation tells its delay, and is settled once.
func TestReservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(t, "model=100/m burst 100")
		reserve := func(n int64) *Reservation { return must(l.Reserve(t.Context(), "k", n)) }
		left := func() int64 { return must(l.Peek(t.Context(), "k")).Remaining }
		a, b := reserve(90), reserve(40)
		if a.Delay() != 0 || b.Delay().Round(time.Millisecond) != 18*time.Second {
			t.Errorf("delays %s, %s", a.Delay(), b.Delay())
		}
		settle := func(err error) {
			if err != nil {
				t.Error(err)
			}
		}
		settle(b.Cancel(t.Context()))
		settle(b.Cancel(t.Context()))
		if left() != 10 {
			t.Errorf("%d are left after the cancel", left())
		}
		settle(a.Commit(t.Context(), 20))
		if left() != 80 {
			t.Errorf("%d are left after the commit of 20", left())
		}
		settle(reserve(10).Commit(t.Context(), 80))
		if left() != 0 {
			t.Errorf("%d are left after more was used", left())
		}
		c := must(l.ReserveFor(t.Context(), "k", 50, time.Second))
		time.Sleep(c.Delay() + time.Second)
		before := left()
		settle(c.Cancel(t.Context()))
		if left() != before {
			t.Errorf("too late: %d are left, and were %d before", left(), before)
		}
		if err := c.Commit(t.Context(), -1); err == nil {
			t.Error("a negative use was committed")
		}
	})
}
