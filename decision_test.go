package headgate

import (
	"math"
	"testing"
	"time"
)

// Waits past 285 years are shown as that, and never as a negative one.
func TestLongWaits(t *testing.T) {
	longest := time.Duration(maxExact) * micro
	for micros, want := range map[int64]time.Duration{0: 0, 1: micro, maxExact: longest,
		maxExact + 1: longest, math.MaxInt64: longest} {
		if got := duration(micros); got != want {
			t.Errorf("%d microseconds are %v, want %v", micros, got, want)
		}
	}
	m := NewMemorySize(10)
	l := FixedWindow(1, longest)
	d := must(m.Take(t.Context(),
		Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(maxExact - 1e6)}))
	if !d.Allowed() || d.ResetAfter != time.Second {
		t.Errorf("the last second of the longest window: %+v", d)
	}
	d = must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: time.UnixMicro(1)}))
	if d.Allowed() || d.RetryAfter != longest-micro {
		t.Errorf("from its first microsecond: %+v", d)
	}
}
