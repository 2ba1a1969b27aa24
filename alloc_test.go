//go:build !race

// Under the race detector sync.Pool forgets at random, and allocations cannot be counted.

package headgate

import (
	"context"
	"testing"
	"time"
)

func TestAllowDoesNotAllocate(t *testing.T) {
	steady := everyAlgorithm(1000, time.Hour)
	steady = append(steady, SlidingLog(60, time.Microsecond), Per(5, time.Microsecond).Burst(5))
	ctx := t.Context()
	measure := func(what string, limits ...Limit) {
		t.Helper()
		limiter := must(NewLimiter(NewMemorySize(1000), limits...))
		keys := []string{"one", "two", "three"}
		i := 0
		allow := func() {
			i++
			if _, err := limiter.Allow(ctx, keys[i%len(keys)]); err != nil {
				t.Fatal(err)
			}
		}
		for range 5000 { // until logs have grown and denials set in
			allow()
		}
		if n := testing.AllocsPerRun(1000, allow); n != 0 {
			t.Errorf("%s: %v allocations a decision", what, n)
		}
	}
	for _, l := range steady {
		measure("one limit, "+l.String(), l)
	}
	measure("two limits", steady[0], steady[2])
	measure("five limits", steady[:5]...)
	measure("eight limits", append(
		everyAlgorithm(1000, time.Hour), everyAlgorithm(500, time.Minute)[:3]...)...)

	plans := []Limit{steady[0], steady[2]}
	limiter, _ := NewLimiterFunc(
		NewMemorySize(1000), func(context.Context, string) ([]Limit, error) { return plans, nil })
	if n := testing.AllocsPerRun(1000, func() { must(limiter.Allow(ctx, "k")) }); n != 0 {
		t.Errorf("limits of each key: %v allocations a decision", n)
	}
}

// A forced request in memory allocates nothing, fit or not, nor does a group of them.
func TestForcedRequestsDoNotAllocate(t *testing.T) {
	m := NewMemorySize(1000)
	var rs []Request
	for _, l := range everyAlgorithm(5, time.Hour) {
		rs = append(rs, Request{Key: "k", Limit: l, Cost: 1, Force: true})
	}
	ds := make([]Decision, len(rs))
	for range 20 { // until they do not fit
		_ = m.TakeAll(t.Context(), rs, ds)
	}
	if n := testing.AllocsPerRun(1000, func() { _ = m.TakeAll(t.Context(), rs, ds) }); n != 0 ||
		Strictest(ds).Remaining >= 0 {
		t.Errorf("together: %v allocations, %+v", n, ds)
	}
	for _, r := range rs {
		if n := testing.AllocsPerRun(1000, func() { must(m.Take(t.Context(), r)) }); n != 0 {
			t.Errorf("%v: %v allocations", r.Limit, n)
		}
	}
}

// A Wait that is granted at once in memory allocates nothing.
func TestWaitAllocatesNothingInMemory(t *testing.T) {
	l := must(NewLimiter(NewMemorySize(1000), PerSecond(1e6).Burst(1e6)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_ = l.Wait(ctx, "k")
	if n := testing.AllocsPerRun(100, func() { _ = l.Wait(ctx, "k") }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
