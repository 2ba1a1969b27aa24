package gate

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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

// A million goroutines wait at one gate: what each takes, its goroutine included, and
// what it takes until it has run when the turn of all has come. The same goroutines at a
// channel are there to compare, in a run of their own, because stacks are reused.
func BenchmarkGateWaiters(b *testing.B) {
	g := must(New(waiters, time.Hour))
	must(0, g.WaitN(b.Context(), waiters))
	benchWaiters(b, g.standing, func(ctx context.Context) { _ = g.Wait(ctx) }, func() {
		g.mu.Lock()
		g.history = history{} // an hour later
		g.Head.look()
		g.mu.Unlock()
	})
}

func BenchmarkChannelWaiters(b *testing.B) {
	open := make(chan struct{})
	var standing atomic.Int32
	benchWaiters(b, func() int { return int(standing.Load()) }, func(ctx context.Context) {
		standing.Add(1)
		select {
		case <-open:
		case <-ctx.Done():
		}
	}, func() { close(open) })
}

const waiters = 1_000_000

func benchWaiters(b *testing.B, standing func() int, wait func(context.Context), open func()) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	before := memory()
	var wg sync.WaitGroup
	for range waiters {
		wg.Go(func() { wait(ctx) })
	}
	for standing() < waiters {
		runtime.Gosched()
	}
	b.ReportMetric(float64(memory()-before)/waiters, "B/waiter")
	start := time.Now()
	open()
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/waiters, "ns/let-go")
	wg.Wait()
	b.ReportMetric(float64(time.Since(start).Nanoseconds())/waiters, "ns/woken")
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
