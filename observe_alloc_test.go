//go:build !race

// As in alloc_test.go.

package headgate

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Being observed allocates nothing, nor does counting who is denied, also if all are new.
func TestObserveDoesNotAllocate(t *testing.T) {
	top, called := NewTopDenied(100), 0
	s := must(Observe(NewMemory(1000), Observer{Decided: top.Decided, Called: func(context.Context, Call) { called++ }}))
	two := must(NewLimiter(s, FixedWindow(1, time.Hour), PerHour(5)))
	one := must(NewLimiter(s, FixedWindow(1, time.Hour)))
	ctx := t.Context()
	for what, limiter := range map[string]*Limiter{"one limit": one, "two limits": two} {
		must(limiter.Allow(ctx, "k"))
		if n := testing.AllocsPerRun(1000, func() { must(limiter.Allow(ctx, "k")) }); n != 0 {
			t.Errorf("%s: %v allocations a decision", what, n)
		}
	}
	if n := testing.AllocsPerRun(1000, func() {
		if err := s.Reset(ctx, "k", FixedWindow(1, time.Hour)); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a Reset", n)
	}
	if called == 0 || len(top.Top()) != 1 { // the bucket spared what the window denied
		t.Errorf("told of %d calls and %d denied keys", called, len(top.Top()))
	}

	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = strings.Repeat("x", 10*(i%30)) + strconv.Itoa(i)
	}
	i, l := 0, FixedWindow(1, time.Hour)
	if n := testing.AllocsPerRun(5000, func() {
		top.Decided(ctx, denied(keys[i%len(keys)], l))
		i++
	}); n != 0 {
		t.Errorf("%v allocations for one of many denied keys", n)
	}
}
