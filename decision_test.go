package headgate

import (
	"math"
	"testing"
	"time"
)

// Waits past 285 years are shown as that, and never as a negative one.
func TestLongWaits(t *testing.T) {
	longest := time.Duration(maxExact) * micro
	for micros, want := range map[int64]time.Duration{0: 0, 1: micro, maxExact: longest, maxExact + 1: longest, math.MaxInt64: longest} {
		if got := duration(micros); got != want {
			t.Errorf("%d microseconds are %v, want %v", micros, got, want)
		}
	}
	m := NewMemorySize(10)
	l := FixedWindow(1, longest)
	d := must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(maxExact - 1e6)}))
	if !d.Allowed() || d.ResetAfter != time.Second {
		t.Errorf("the last second of the longest window: %+v", d)
	}
	d = must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(1)}))
	if d.Allowed() || d.RetryAfter != longest-micro {
		t.Errorf("from its first microsecond: %+v", d)
	}
}

// Costs at the ends of int64 are costs like others: nothing wraps around.
func TestCostsAtTheEndsOfInt64(t *testing.T) {
	for _, l := range everyAlgorithm(5, time.Hour) {
		play(t, NewMemorySize(10), l, []row{
			{0, math.MaxInt64, false, 5, Never, 0, "all there is"},
			{0, math.MinInt64, true, 5, 0, 0, "given back to a full one"},
			{0, 5, true, 0, 0, reset(l), "the whole of it"},
			{0, math.MaxInt64, false, 0, Never, reset(l), "more"},
			{0, math.MinInt64, true, 5, 0, 0, "everything given back"},
			{0, math.MinInt64 + 1, true, 5, 0, 0, "and again"},
			{0, 6, false, 5, Never, 0, "still no more than it holds"},
		})
	}
}

// reset is the wait from midnight until the initial state, if l is exhausted then.
func reset(l Limit) time.Duration {
	if l.Algorithm() == AlgorithmSlidingWindow {
		return 2 * l.Period()
	}
	return l.Period()
}
