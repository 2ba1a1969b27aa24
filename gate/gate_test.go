package gate

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// A gate makes its period a little longer, and no caller passes before that.
func TestGateLeavesLeeway(t *testing.T) {
	for period, want := range map[time.Duration]time.Duration{
		1:                        minLeeway,
		40960 * time.Nanosecond:  minLeeway,
		40960 * time.Microsecond: 10 * time.Microsecond,
		time.Hour:                maxLeeway,
	} {
		synctest.Test(t, func(t *testing.T) {
			g := must(New(2, period))
			if _, got := g.Rate(); got != period+want {
				t.Errorf("the period of %s is %s; want %s more", period, got, want)
			}
			start := time.Now()
			for i := range 10 {
				must(0, g.Wait(t.Context()))
				if got, want := time.Since(start), time.Duration(i/2)*(period+want); got != want {
					t.Errorf("number %d passes at %s; want %s", i, got, want)
				}
			}
		})
	}
}

// holdPromise checks that no window of the length of a period, wherever it begins, holds more
// than n of the moments seen.
func holdPromise(t *testing.T, seen []time.Time, n int, period time.Duration) {
	t.Helper()
	slices.SortFunc(seen, time.Time.Compare)
	for i := range max(len(seen)-n, 0) {
		if span := seen[i+n].Sub(seen[i]); span < period {
			t.Errorf("passes %d to %d of %d, which is one too many, lie within %s, %s too short",
				i, i+n, len(seen), span, period-span)
			return
		}
	}
}

func TestGateComesFirstServedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(3, time.Second)
		var mu sync.Mutex
		var order []int
		at := map[int]time.Duration{}
		start := time.Now()
		for i, n := range []int64{1, 3, 1, 2, 1, 1, 3} {
			go func() {
				if err := g.WaitN(t.Context(), n); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				at[i] = time.Since(start)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		// The third of 1 does not overtake the 3 before it, though it would fit.
		for i, want := range []float64{0, 1, 2, 2, 3, 3, 4} {
			if at[i].Seconds() != want {
				t.Errorf("number %d passes at %s; want %vs (%v)", i, at[i], want, at)
			}
		}
		if !slices.IsSortedFunc(order, func(a, b int) int { return int(at[a] - at[b]) }) {
			t.Errorf("order %v", order)
		}
	})
}

// One at a time, a hundred who came one after the other, of whom every third gives up.
func TestGateKeepsOrderWhenSomeGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(1, time.Second)
		var mu sync.Mutex
		var order []int
		start := time.Now()
		for i := range 100 {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 2 {
				time.AfterFunc(time.Millisecond, cancel)
			}
			go func() {
				if g.Wait(ctx) == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, i)
				}
			}()
			synctest.Wait()
		}
		time.Sleep(66 * time.Second)
		synctest.Wait()
		if len(order) != 67 || !slices.IsSorted(order) {
			t.Errorf("after %s: %d in the order %v; want 67 in order", time.Since(start),
				len(order), order)
		}
		if open, in := g.Peek(); open || in != time.Second {
			t.Errorf("Peek is %v, %s; want closed for 1s: those who gave up are charged nothing",
				open, in)
		}
	})
}

func TestGateCloseWakesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(1, time.Hour)
		must(0, g.Wait(t.Context()))
		errs := make(chan error, 1000)
		for range cap(errs) {
			go func() { errs <- g.Wait(t.Context()) }()
		}
		synctest.Wait()
		start := time.Now()
		g.Close()
		g.Close()
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Fatalf("a waiter gets %v; want ErrClosed", err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("they were woken after %s", took)
		}
		if err := g.Wait(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("later: %v; want ErrClosed", err)
		}
		for _, timeout := range []time.Duration{0, time.Second} {
			if passed, err := g.TryWait(t.Context(), timeout); passed ||
				!errors.Is(err, ErrClosed) {
				t.Errorf("TryWait(%s) at a closed gate: %v, %v", timeout, passed, err)
			}
		}
		if open, in := g.Peek(); open || in != headgate.Never {
			t.Errorf("Peek is %v, %s; want never", open, in)
		}
	})
}

func TestGateRefusesADeadlineThatCannotBeMet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(2, time.Minute)
		start := time.Now()
		ask := func(n int64, within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return g.WaitN(ctx, n)
		}
		must(0, ask(2, time.Second))
		err := ask(1, time.Minute-1)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1m0s") {
			t.Errorf("error %v; want one that wraps DeadlineExceeded and names the wait of 1m0s",
				err)
		}
		for range 3 { // all together need this minute and one more
			go func() { _ = g.Wait(t.Context()) }()
		}
		synctest.Wait()
		for _, c := range []struct {
			n     int64
			after time.Duration
		}{{1, 2*time.Minute + 1}, {2, 3*time.Minute + 1}} {
			if err := ask(c.n, c.after-1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d tokens behind three: %v", c.n, err)
			}
		}
		if got := time.Since(start); got != 0 {
			t.Errorf("to be refused took %s", got)
		}
		if err := ask(1, 2*time.Minute+1); err != nil || time.Since(start) != 2*time.Minute {
			t.Errorf("with just enough time: %v after %s", err, time.Since(start))
		}
	})
}

// A forecast is exact if all take one token, and never too late.
func TestGateForecast(t *testing.T) {
	for _, widest := range []int64{1, 3, 10} {
		synctest.Test(t, func(t *testing.T) {
			g := exact(10, time.Second)
			start := time.Now()
			for i := range int64(200) {
				n := i*7%widest + 1
				g.mu.Lock()
				g.forget(nanos(), g.period)
				forecast := g.forecast(n, nanos())
				g.mu.Unlock()
				go func() {
					_ = g.WaitN(t.Context(), n)
					if got := time.Since(start); got < forecast || got != forecast && widest == 1 {
						t.Errorf("number %d, of %d tokens, passes at %s; forecast %s", i, n, got,
							forecast)
					}
				}()
				synctest.Wait()
			}
			time.Sleep(time.Hour)
		})
	}
}

// However many tokens wait, no forecast overflows.
func TestGateForecastOfTheLargestNumbers(t *testing.T) {
	g := must(New(maxTokens, maxPeriod))
	last := time.Duration(0)
	for i := range 1 << 15 {
		g.waiting += min(maxTokens, maxCount)
		in := g.forecast(maxTokens, nanos())
		if in < last {
			t.Fatalf("behind %d waiters the pass comes in %s, before those ahead", i+1, in)
		}
		last = in
	}
}

// A timeout that is negative, such as the time until a deadline that has passed, takes no pass.
func TestNegativeTimeouts(t *testing.T) {
	shared := must(NewShared(concurrency.NewMemory(), "k", 1, time.Second))
	t.Cleanup(func() { _ = shared.Close() })
	for name, try := range map[string]func(time.Duration) (bool, error){
		"Gate": func(d time.Duration) (bool, error) {
			return must(New(1, time.Second)).TryWait(t.Context(), d)
		},
		"SharedGate": func(d time.Duration) (bool, error) {
			return shared.TryWait(t.Context(), d)
		},
	} {
		passed, err := try(-1)
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || passed {
			t.Errorf("%s: %v, %v", name, passed, err)
		}
		if passed, err := try(0); !passed || err != nil {
			t.Errorf("%s, after it: %v, %v", name, passed, err)
		}
	}
}

func TestGateTryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(1, time.Second)
		start := time.Now()
		for _, c := range []struct {
			timeout time.Duration
			want    bool
			at      time.Duration
		}{
			{0, true, 0},
			{0, false, 0},
			{time.Second, false, 0}, // cannot be met: at once
			{time.Second + 1, true, time.Second},
			{time.Hour, true, 2 * time.Second},
			{0, false, 2 * time.Second},
		} {
			got, err := g.TryWait(t.Context(), c.timeout)
			if got != c.want || err != nil || time.Since(start) != c.at {
				t.Errorf("TryWait(%s) is %v, %v at %s; want %v at %s", c.timeout, got, err,
					time.Since(start), c.want, c.at)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if passed, err := g.TryWait(ctx, time.Hour); passed || !errors.Is(err, context.Canceled) {
			t.Errorf("a context that ends while TryWait waits: %v, %v", passed, err)
		}
		if passed, err := g.TryWait(ctx, 0); passed || !errors.Is(err, context.Canceled) {
			t.Errorf("a context that has ended: %v, %v", passed, err)
		}
		late, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if passed, err := g.TryWait(late, time.Hour); passed ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a deadline of the caller that has passed: %v, %v", passed, err)
		}
	})
}

func TestGatePeekConsumesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(2, time.Second)
		peek := func(wantOpen bool, want time.Duration) {
			t.Helper()
			if open, in := g.Peek(); open != wantOpen || in != want {
				t.Errorf("Peek is %v, %s; want %v, %s", open, in, wantOpen, want)
			}
		}
		peek(true, 0)
		peek(true, 0)
		must(0, g.Wait(t.Context()))
		peek(true, 0)
		time.Sleep(300 * time.Millisecond)
		must(0, g.Wait(t.Context()))
		peek(false, 700*time.Millisecond)
		go func() { _ = g.Wait(t.Context()) }()
		synctest.Wait()
		peek(false, time.Second) // behind the caller that waits
		go func() { _ = g.Wait(t.Context()) }()
		synctest.Wait()
		peek(false, 1700*time.Millisecond)
		time.Sleep(time.Minute)
		peek(true, 0)
	})
}

// When a caller that needs many tokens leaves, those behind that need fewer may pass earlier.
func TestGateSetsItsTimerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := exact(10, 10*time.Second)
		start := time.Now()
		must(0, g.WaitN(t.Context(), 5))
		time.Sleep(5 * time.Second)
		must(0, g.WaitN(t.Context(), 5))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = g.WaitN(ctx, 10) }()
		synctest.Wait()
		time.AfterFunc(time.Second, cancel)
		if err := g.Wait(t.Context()); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("passed after %s, %v; want 10s", time.Since(start), err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		n      int64
		period time.Duration
		want   string
	}{
		{0, time.Second, "n is 0"},
		{-1, time.Second, "n is -1"},
		{math.MaxInt64, time.Second, "n is 9223372036854775807"},
		{1, 0, "period is 0s"},
		{1, -time.Second, "period is -1s"},
		{1, math.MaxInt64, "period is 2562047h47m16.854775807s"},
	} {
		_, err := New(c.n, c.period)
		if e, ok := errors.AsType[*headgate.InvalidError](err); !ok ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%d, %s): %v; want %q", c.n, c.period, e, c.want)
		}
	}
	g := must(New(maxTokens, maxPeriod))
	for _, n := range []int64{0, -1, math.MinInt64, maxTokens + 1} {
		if err := g.WaitN(t.Context(), n); err == nil {
			t.Errorf("WaitN(%d): no error", n)
		}
	}
	must(0, g.WaitN(t.Context(), maxTokens))
	if open, in := g.Peek(); open || in < maxPeriod-time.Hour {
		t.Errorf("the largest gate, full: %v, %s", open, in)
	}
	var zero Gate
	for _, timeout := range []time.Duration{0, time.Second} {
		passed, err := zero.TryWait(t.Context(), timeout)
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || passed {
			t.Errorf("TryWait(%s) at the zero Gate: %v, %v", timeout, passed, err)
		}
	}
	if _, ok := errors.AsType[*headgate.InvalidError](zero.Wait(t.Context())); !ok {
		t.Error("the zero Gate lets pass")
	}
	if open, _ := zero.Peek(); open {
		t.Error("the zero Gate is open")
	}
	zero.Close()
}
