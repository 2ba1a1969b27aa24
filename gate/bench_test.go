package gate

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
)

// The cost of a pass without waiting.
func BenchmarkGatePass(b *testing.B) {
	ctx := b.Context()
	b.Run("one core", func(b *testing.B) {
		g := must(New(1<<40, time.Millisecond))
		for b.Loop() {
			if err := g.Wait(ctx); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all cores", func(b *testing.B) {
		g := must(New(1<<40, time.Millisecond))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := g.Wait(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	})
}

// How much of its limit a gate lets pass on a real clock.
func BenchmarkGateThroughput(b *testing.B) {
	for _, c := range []struct {
		n       int64
		period  time.Duration
		callers int
	}{
		{1, time.Millisecond, 4},
		{10, 10 * time.Millisecond, 16},
		{100, 100 * time.Millisecond, 16},
		{100, 100 * time.Millisecond, 1000},
		{1000, 100 * time.Millisecond, 2000},
		{1000, time.Second, 1000},
	} {
		b.Run(fmt.Sprintf("%d per %s, %d callers", c.n, c.period, c.callers), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(throughput(c.n, c.period, c.callers, 3*time.Second), "of-limit")
			}
		})
	}
}

// throughput is the part of its limit that a gate lets pass: whole turns of n, from
// the first pass to one some whole number of turns later.
func throughput(n int64, period time.Duration, callers int, span time.Duration) float64 {
	g := must(New(n, period))
	var mu sync.Mutex
	var seen []time.Time
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for g.Wait(context.Background()) == nil {
				now := time.Now()
				mu.Lock()
				seen = append(seen, now)
				mu.Unlock()
			}
		})
	}
	<-time.After(span)
	g.Close()
	wg.Wait()
	slices.SortFunc(seen, time.Time.Compare)
	rounds := (int64(len(seen)) - 1) / n
	return float64(rounds) * float64(period) / float64(seen[rounds*n].Sub(seen[0]))
}
