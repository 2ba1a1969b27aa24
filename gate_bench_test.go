package headgate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// What a pass costs where nobody waits.
func BenchmarkGatePass(b *testing.B) {
	ctx := b.Context()
	for _, n := range []int64{1 << 10, 1 << 40} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			g := must(NewGate(n, time.Millisecond))
			if n == 1<<10 {
				g = must(NewGate(n, time.Nanosecond))
			}
			for b.Loop() {
				if err := g.Wait(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("all cores", func(b *testing.B) {
		g := must(NewGate(1<<40, time.Millisecond))
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
	}{{1, time.Millisecond, 4}, {1, 10 * time.Millisecond, 4}, {10, 10 * time.Millisecond, 16}, {100, 10 * time.Millisecond, 200}, {1000, 10 * time.Millisecond, 2000}, {10, 100 * time.Millisecond, 16}, {100, 100 * time.Millisecond, 16}, {100, 100 * time.Millisecond, 1000}, {1000, 100 * time.Millisecond, 16}, {10_000, 100 * time.Millisecond, 5000}} {
		b.Run(fmt.Sprintf("%d per %s, %d callers", c.n, c.period, c.callers), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(throughput(c.n, c.period, c.callers, 2*time.Second), "of-limit")
			}
		})
	}
}

// throughput is the part of its limit that a gate lets pass: whole turns of n, from
// the first pass to one some whole number of turns later.
func throughput(n int64, period time.Duration, callers int, span time.Duration) float64 {
	g := must(NewGate(n, period))
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

// A million goroutines wait at one gate: what each takes, and what it takes to wake one.
func BenchmarkGateWaiters(b *testing.B) {
	for _, plain := range []bool{false, true} {
		name := "gate"
		if plain {
			name = "channel alone"
		}
		b.Run(name, func(b *testing.B) {
			const waiters = 1_000_000
			for b.Loop() {
				g := must(NewGate(1, time.Hour))
				_ = g.Wait(b.Context())
				before := memory()
				var wg sync.WaitGroup
				stop := make(chan struct{})
				ctx, cancel := context.WithCancel(b.Context())
				for range waiters {
					wg.Go(func() {
						if plain {
							select {
							case <-stop:
							case <-ctx.Done():
							}
						} else {
							_ = g.Wait(ctx)
						}
					})
				}
				for !plain && g.standing() < waiters {
					runtime.Gosched()
				}
				b.ReportMetric(float64(memory()-before)/waiters, "B/waiter")
				start := time.Now()
				close(stop)
				g.Close()
				wg.Wait()
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/waiters, "ns/woken")
				cancel()
			}
		})
	}
}

func (g *Gate) standing() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return int(g.waiting)
}

func memory() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
