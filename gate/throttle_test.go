package gate

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// count is the numbers below n.
func count(n int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

func TestThrottleWaitsBeforeEachElement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(New(5, time.Second))
		start := time.Now()
		numbers, stopped := Throttle(t.Context(), g, count(20))
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

// A loop that breaks has not been stopped; one whose context ends or whose gate is closed has.
func TestThrottleReportsWhyItStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := must(New(2, time.Second))
		ctx, cancel := context.WithCancel(t.Context())
		numbers, stopped := Throttle(ctx, g, count(10))
		for i := range numbers {
			if i == 4 {
				break
			}
		}
		if err := stopped(); err != nil {
			t.Errorf("after a break: %v", err)
		}
		time.AfterFunc(1500*time.Millisecond, cancel)
		if got := slices.Collect(numbers); len(got) != 3 || !errors.Is(stopped(), context.Canceled) {
			t.Errorf("%d elements, stopped by %v; want 3 and a cancelled context", len(got), stopped())
		}
		numbers, stopped = Throttle(t.Context(), g, count(10))
		time.AfterFunc(10*time.Second, func() { _ = g.Close() })
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

// A Waiter that is nil is an error, not a panic.
func TestNoWaiter(t *testing.T) {
	numbers, stopped := Throttle(t.Context(), nil, count(3))
	for range numbers {
		t.Error("an element passes")
	}
	if err := stopped(); !isInvalid(err) {
		t.Errorf("Throttle is stopped by %v", err)
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
