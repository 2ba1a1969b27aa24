//go:build !race

// Under the race detector sync.Pool forgets at random, and allocations cannot be counted.

package headgate

import (
	"testing"
	"time"
)

func TestAllowDoesNotAllocate(t *testing.T) {
	steady := everyAlgorithm(1000, time.Hour)
	steady = append(steady, SlidingLog(60, time.Microsecond), Per(5, time.Microsecond).Burst(5))
	ctx := t.Context()
	measure := func(what string, limits ...Limit) {
		t.Helper()
		limiter := must(NewLimiter(NewMemory(1000), limits...))
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
	measure("eight limits", append(everyAlgorithm(1000, time.Hour), everyAlgorithm(500, time.Minute)[:3]...)...)

	plans := []Limit{steady[0], steady[2]}
	limiter, _ := NewLimiterFunc(NewMemory(1000), func(string) []Limit { return plans })
	if n := testing.AllocsPerRun(1000, func() { must(limiter.Allow(ctx, "k")) }); n != 0 {
		t.Errorf("limits of each key: %v allocations a decision", n)
	}
}
