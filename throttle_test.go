package headgate

import (
	"context"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// count is the numbers below n; fetching each takes that long.
func count(n int, fetch time.Duration) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			time.Sleep(fetch)
			if !yield(i) {
				return
			}
		}
	}
}

func TestThrottleWaitsBeforeEachElement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(NewGate(5, time.Second))
		start := time.Now()
		numbers, stopped := Throttle(t.Context(), g, count(20, 0))
		next := 0
		for i := range numbers {
			if at := time.Since(start); i != next || at != time.Duration(i/5)*time.Second {
				t.Errorf("element %d at %s", i, at)
			}
			next++
		}
		if next != 20 || stopped() != nil || time.Since(start) != 3*time.Second {
			t.Errorf("%d elements in %s, stopped by %v", next, time.Since(start), stopped())
		}
	})
}

// Whoever breaks out has not been stopped; one whose context ends, or whose gate is
// closed, has; and the next loop begins anew.
func TestThrottleTellsAnEarlyEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(NewGate(2, time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		pairs, stopped := Throttle2(ctx, g, slices.All(make([]string, 10)))
		for i := range pairs {
			if i == 4 {
				break
			}
		}
		if err := stopped(); err != nil {
			t.Errorf("after a break: %v", err)
		}
		time.AfterFunc(1500*time.Millisecond, cancel)
		if got := maps.Collect(pairs); len(got) != 3 || !errors.Is(stopped(), context.Canceled) {
			t.Errorf("%d elements, stopped by %v; want 3 and a cancelled context", len(got), stopped())
		}
		numbers, stopped := Throttle(t.Context(), g, count(10, 0))
		time.AfterFunc(10*time.Second, g.Close)
		for i := range numbers {
			if i == 5 {
				time.Sleep(10 * time.Second)
			}
		}
		if !errors.Is(stopped(), ErrClosed) {
			t.Errorf("stopped by %v; want ErrClosed", stopped())
		}
	})
}

// The promise is about the calls, whatever it takes to fetch an element.
func TestForEachPacesTheCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, period = 5, time.Second
		g := must(NewGate(n, period))
		var mu sync.Mutex
		var seen []time.Time
		var at, most atomic.Int32
		err := ForEach(t.Context(), g, 16, count(50, 90*time.Millisecond), func(_ context.Context, i int) error {
			most.Store(max(most.Load(), at.Add(1)))
			defer at.Add(-1)
			mu.Lock()
			seen = append(seen, time.Now())
			mu.Unlock()
			time.Sleep(time.Duration(i%4) * 2 * time.Second)
			return nil
		})
		if err != nil || len(seen) != 50 {
			t.Errorf("%d calls, %v", len(seen), err)
		}
		holdPromise(t, seen, n, period)
		if m := most.Load(); m > 16 || m < 10 {
			t.Errorf("up to %d calls at a time; want at most 16, and nearly", m)
		}
		if got, want := seen[49].Sub(seen[0]), 9*period; got < want || got > want+period {
			t.Errorf("took %s; want about %s", got, want)
		}
	})
}

func TestForEachStopsAtTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(NewGate(10, time.Second))
		failure := errors.New("no")
		var begun, cancelled atomic.Int32
		start := time.Now()
		err := ForEach(t.Context(), g, 8, count(1000, 0), func(ctx context.Context, i int) error {
			begun.Add(1)
			if i == 5 {
				time.Sleep(time.Second / 2)
				return failure
			}
			<-ctx.Done()
			cancelled.Add(1)
			return ctx.Err()
		})
		if !errors.Is(err, failure) || begun.Load() != 8 || cancelled.Load() != 7 || time.Since(start) != time.Second/2 {
			t.Errorf("%v after %s, %d begun and %d cancelled; want 8 and 7", err, time.Since(start), begun.Load(), cancelled.Load())
		}
	})
}

// Why a context has ended is told, wherever that is noticed first; what do says in its own
// words stays.
func TestForEachTellsWhyItsContextEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("why")
		own := errors.New("own")
		for _, c := range []struct {
			after time.Duration
			do    func(context.Context) error
			want  error
		}{
			{0, func(context.Context) error { return nil }, why},
			{1500 * time.Millisecond, func(context.Context) error { return nil }, why},
			{time.Second / 2, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, why},
			{time.Second / 2, func(ctx context.Context) error { <-ctx.Done(); return own }, own},
		} {
			for _, parallel := range []int{1, 4} {
				g := must(NewGate(1, time.Second))
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.after == 0 {
					cancel(why)
				}
				time.AfterFunc(c.after, func() { cancel(why) })
				err := ForEach(ctx, g, parallel, count(100, 0), func(ctx context.Context, _ int) error { return c.do(ctx) })
				if !errors.Is(err, c.want) && (errors.Is(c.want, why) || !errors.Is(err, why)) { // who waits may be first
					t.Errorf("after %s, %d at a time: %v; want %v", c.after, parallel, err, c.want)
				}
				cancel(nil)
			}
		}
	})
}

// A Waiter that is nil is an error, not a panic.
func TestNoWaiter(t *testing.T) {
	numbers, stopped := Throttle(t.Context(), nil, count(3, 0))
	for range numbers {
		t.Error("an element passes")
	}
	if err := stopped(); !isInvalid(err) {
		t.Errorf("Throttle is stopped by %v", err)
	}
	pairs, stopped := Throttle2(t.Context(), nil, slices.All(make([]int, 3)))
	for range pairs {
		t.Error("a pair passes")
	}
	if err := stopped(); !isInvalid(err) {
		t.Errorf("Throttle2 is stopped by %v", err)
	}
	if err := ForEach(t.Context(), nil, 1, count(3, 0), func(context.Context, int) error { return nil }); !isInvalid(err) {
		t.Errorf("ForEach: %v", err)
	}
	for _, p := range [][]byte{nil, make([]byte, 10)} {
		if n, err := NewReader(t.Context(), endless{}, nil).Read(p); n != 0 || !isInvalid(err) {
			t.Errorf("Read: %d, %v", n, err)
		}
		if n, err := NewWriter(t.Context(), io.Discard, nil).Write(p); n != 0 || !isInvalid(err) {
			t.Errorf("Write: %d, %v", n, err)
		}
	}
}

func TestForEachEndsWithItsContextAndItsGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(NewGate(1, time.Second))
		var calls atomic.Int32
		do := func(context.Context, int) error { calls.Add(1); return nil }
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Millisecond, cancel)
		if err := ForEach(ctx, g, 4, count(100, 0), do); !errors.Is(err, context.Canceled) || calls.Load() != 3 {
			t.Errorf("%v after %d calls; want 3 and cancelled", err, calls.Load())
		}
		if err := ForEach(ctx, g, 4, count(100, 0), do); !errors.Is(err, context.Canceled) || calls.Load() != 3 {
			t.Errorf("after its context: %v after %d calls", err, calls.Load())
		}
		time.AfterFunc(2*time.Second, g.Close)
		if err := ForEach(t.Context(), g, 4, count(100, 0), do); !errors.Is(err, ErrClosed) {
			t.Errorf("%v; want ErrClosed", err)
		}
		if err := ForEach(t.Context(), g, 0, count(1, 0), do); err == nil {
			t.Error("parallel 0: no error")
		}
		if err := ForEach(t.Context(), g, 1, count(0, 0), do); err != nil {
			t.Errorf("nothing to do: %v", err)
		}
	})
}

func TestForEachPassesPanicsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(NewGate(100, time.Second))
		caught := func(seq func(func(int) bool), do func(context.Context, int) error) (value any) {
			defer func() { value = recover() }()
			_ = ForEach(t.Context(), g, 4, seq, do)
			return nil
		}
		var ended atomic.Int32
		until := func(ctx context.Context) error {
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		}
		value := caught(count(10, 0), func(ctx context.Context, i int) error {
			if i == 2 {
				time.Sleep(time.Second)
				panic("at 2")
			}
			return until(ctx)
		})
		if value != "at 2" || ended.Load() != 3 {
			t.Errorf("a call: caught %v when %d others had ended", value, ended.Load())
		}
		value = caught(func(yield func(int) bool) {
			yield(0)
			time.Sleep(time.Second)
			panic("seq")
		}, func(ctx context.Context, _ int) error { return until(ctx) })
		if value != "seq" || ended.Load() != 4 {
			t.Errorf("seq: caught %v when %d others had ended", value, ended.Load())
		}
		exited := make(chan bool)
		go func() {
			defer close(exited)
			_ = ForEach(t.Context(), g, 4, count(10, 0), func(context.Context, int) error { runtime.Goexit(); return nil })
			t.Error("a call ended its goroutine, and the caller goes on")
		}()
		<-exited
	})
}
