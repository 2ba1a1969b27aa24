//go:build !race

// The race detector allocates.

package observe

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

func TestObserveDoesNotAllocate(t *testing.T) {
	top, called := NewTopDenied(100), 0
	s := must(New(headgate.NewMemorySize(1000), Observer{
		Decided: top.Decided,
		Called:  func(context.Context, Call) { called++ },
	}))
	window := headgate.FixedWindow(1, time.Hour)
	ctx := t.Context()
	for what, limiter := range map[string]*headgate.Limiter{
		"one limit":  must(headgate.NewLimiter(s, window)),
		"two limits": must(headgate.NewLimiter(s, window, headgate.PerHour(5))),
	} {
		must(limiter.Allow(ctx, "k"))
		if n := testing.AllocsPerRun(1000, func() { must(limiter.Allow(ctx, "k")) }); n != 0 {
			t.Errorf("%s: %v allocations for a decision", what, n)
		}
	}
	reset := func() {
		if err := s.Reset(ctx, "k", window); err != nil {
			t.Error(err)
		}
	}
	if n := testing.AllocsPerRun(1000, reset); n != 0 {
		t.Errorf("%v allocations for a Reset", n)
	}
	if called == 0 || len(top.Top()) != 1 { // only the window denied
		t.Errorf("%d calls and %d denied keys", called, len(top.Top()))
	}
}

func TestTopDeniedDoesNotAllocateForKnownKeys(t *testing.T) {
	top, l, i := NewTopDenied(100), headgate.FixedWindow(1, time.Hour), 0
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = strings.Repeat("x", 10*(i%30)) + strconv.Itoa(i)
		top.Decided(t.Context(), denial(keys[i], l))
	}
	if n := testing.AllocsPerRun(5000, func() {
		top.Decided(t.Context(), denial(keys[i%len(keys)], l))
		i++
	}); n != 0 {
		t.Errorf("%v allocations for one of many denied keys", n)
	}
}
