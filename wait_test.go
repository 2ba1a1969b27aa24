package headgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
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
		if err := c.Cancel(t.Context()); !errors.Is(err, ErrTooLate) {
			t.Errorf("too late: %v", err)
		}
		if left() != before {
			t.Errorf("too late: %d are left, and were %d before", left(), before)
		}
		for _, used := range []int64{-1, 1 << 40} {
			if err := c.Commit(t.Context(), used); err == nil {
				t.Errorf("a use of %d was committed", used)
			}
		}
	})
}

// When one leaves who waits for more or fewer tokens than those behind, these move up, and nobody
// who comes later goes before them.
func TestThoseBehindMoveUp(t *testing.T) {
	for text, want := range map[string]string{"5/5s burst 5": "[1s 2s 3s 4s]", "60/m burst 5": "[1s 2s 3s 4s]"} {
		synctest.Test(t, func(t *testing.T) {
			l := newTestLimiter(t, text)
			start := time.Now()
			wait := func(ctx context.Context, n int64, seen *time.Duration) {
				if l.WaitN(ctx, "k", n) == nil {
					*seen = time.Since(start).Round(time.Second)
				}
			}
			var seen [6]time.Duration
			ctx, leave := context.WithCancel(t.Context())
			wait(t.Context(), 5, &seen[0])
			go wait(ctx, 5, &seen[1])
			synctest.Wait()
			for i := range 3 {
				go wait(t.Context(), 1, &seen[2+i])
				synctest.Wait()
			}
			time.Sleep(100 * time.Millisecond)
			leave()
			synctest.Wait()
			wait(t.Context(), 1, &seen[5])
			synctest.Wait()
			if got := fmt.Sprint(seen[2:]); got != want || seen[1] != 0 {
				t.Errorf("%s: %s; want %s", text, got, want)
			}
		})
	}
}

// A long line of those who wait for different numbers of tokens, the first of whom leave, passes at
// the limit and not above it, also beside those who come later; and so does one of reservations.
func TestALongMixedLineMovesUp(t *testing.T) {
	for _, reserve := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newTestLimiter(t, "1/5ms burst 2")
			var all sync.WaitGroup
			var mu sync.Mutex
			start, passed := time.Now(), int64(0)
			wait := func(ctx context.Context, n int64) {
				wait := l.WaitN
				if reserve {
					wait = func(ctx context.Context, key string, n int64) error { return must(l.Reserve(ctx, key, n)).Wait(ctx) }
				}
				if wait(ctx, "k", n) != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				passed += n
				if most := 3 + int64(time.Since(start)/(5*time.Millisecond)); passed > most {
					t.Errorf("%d tokens within %s", passed, time.Since(start))
				}
			}
			ctx, leave := context.WithCancel(t.Context())
			for range 80 {
				all.Go(func() { wait(ctx, 2) })
				synctest.Wait()
			}
			for i := range 200 {
				all.Go(func() { wait(t.Context(), 1+int64(i%2)) })
				synctest.Wait()
			}
			leave()
			synctest.Wait()
			for range 100 {
				all.Go(func() { wait(t.Context(), 1) })
				synctest.Wait()
			}
			all.Wait()
			if took := time.Since(start); took > 405*5*time.Millisecond {
				t.Errorf("reserved %v: 400 tokens took %s", reserve, took)
			}
		})
	}
}

// A reservation that is cancelled lets those move up who wait behind it.
func TestACancelLetsOthersMoveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newTestLimiter(t, "60/m burst 60")
		r := must(l.Reserve(t.Context(), "k", 60))
		start := time.Now()
		time.AfterFunc(100*time.Millisecond, func() { _ = r.Cancel(context.Background()) })
		if err := l.Wait(t.Context(), "k"); err != nil || time.Since(start) > time.Second {
			t.Errorf("passed after %s, error %v", time.Since(start), err)
		}
	})
}

// Turns under other limits are no turns of the same line: who leaves a fast plan gives nothing to
// who waits under a slow one.
func TestPlansStandInLinesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free, pro := must(ParseLimit("free=1/10s")), must(ParseLimit("pro=1/s"))
		plan := []Limit{pro}
		l := must(NewLimiterFunc(NewMemory(100), func(string) []Limit { return plan }))
		start := time.Now()
		ctx, leave := context.WithCancel(t.Context())
		for range 2 {
			go func() { _ = l.Wait(ctx, "k") }()
			synctest.Wait()
		}
		plan = []Limit{free}
		for range 2 {
			go func() { _ = l.Wait(t.Context(), "k") }()
			synctest.Wait()
		}
		leave()
		if err := l.Wait(t.Context(), "k"); err != nil || time.Since(start).Round(time.Millisecond) != 20*time.Second {
			t.Errorf("the third of the free plan passed after %s, error %v", time.Since(start), err)
		}
	})
}

// remote is a store that takes its time, and does what it was asked though the caller has left.
type remote struct {
	Store
	takes time.Duration
	fail  atomic.Bool
}

func (s *remote) Take(ctx context.Context, r Request) (Decision, error) {
	time.Sleep(s.takes)
	d, err := s.Store.Take(ctx, r)
	if s.fail.Load() && err == nil {
		err = errors.New("the answer was lost")
	}
	return d, err
}

// Who leaves while the store is asked, or whose answer is lost, leaves no turn behind.
func TestWhoLeavesWhileTheStoreIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{Store: NewMemory(100), takes: 100 * time.Millisecond}
		l := must(NewLimiter(s, PerMinute(1)))
		if err := l.Wait(t.Context(), "k"); err != nil { // what is granted at once counts at once
			t.Fatal(err)
		}
		before := time.Now().Add(must(l.Peek(t.Context(), "k")).ResetAfter)
		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			time.AfterFunc(50*time.Millisecond, cancel)
			start := time.Now()
			if err := l.Wait(ctx, "k"); !errors.Is(err, context.Canceled) || time.Since(start) != 50*time.Millisecond {
				t.Errorf("%v after %s", err, time.Since(start))
			}
		}
		time.Sleep(time.Second)
		s.fail.Store(true)
		if err := l.Wait(t.Context(), "k"); err == nil {
			t.Error("a lost answer is no error")
		}
		time.Sleep(time.Second)
		s.fail.Store(false)
		if after := time.Now().Add(must(l.Peek(t.Context(), "k")).ResetAfter); after.Sub(before).Abs() > time.Millisecond {
			t.Errorf("as new at %s; before at %s", after, before)
		}
	})
}

// A Cancel is done though its context has ended, and may be tried again if the store failed.
func TestACancelIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &remote{Store: NewMemory(100)}
		l := must(NewLimiter(s, PerHour(1).Burst(10)))
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := must(l.Reserve(t.Context(), "k", 10)).Cancel(ended); err != nil || must(l.Peek(t.Context(), "k")).Remaining != 10 {
			t.Errorf("after the context has ended: %v", err)
		}
		r := must(l.Reserve(t.Context(), "other", 10))
		s.Store = failing{}
		if err := r.Cancel(t.Context()); err == nil {
			t.Error("a store that fails is no error")
		}
	})
}

type failing struct{ Store }

func (failing) Take(context.Context, Request) (Decision, error) {
	return Decision{}, errors.New("down")
}
