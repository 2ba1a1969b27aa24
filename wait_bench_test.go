package headgate

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// BenchmarkWait passes turns that nobody has to wait for, and reserves and cancels.
func BenchmarkWait(b *testing.B) {
	l := must(NewLimiter(NewMemory(1000), PerSecond(1e9).Burst(1e9)))
	b.Run("pass", func(b *testing.B) {
		for b.Loop() {
			if err := l.Wait(b.Context(), "k"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reserve and cancel", func(b *testing.B) {
		for b.Loop() {
			if err := must(l.Reserve(b.Context(), "k", 1)).Cancel(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkWaiting measures what a waiting caller takes, goroutine and all, and what it costs to
// wake one.
func BenchmarkWaiting(b *testing.B) {
	const waiters = 100_000
	for b.Loop() {
		l := must(NewLimiter(NewMemory(1000), SteppedTokenBucket(50_000, 2*time.Second).Burst(50_000)))
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var all sync.WaitGroup
		for range waiters {
			all.Go(func() { _ = l.Wait(b.Context(), "k") })
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.Sys-before.Sys)/waiters, "B/waiter")
		all.Wait()
	}
}
