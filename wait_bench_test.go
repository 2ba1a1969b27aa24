package headgate

import (
	"context"
	"testing"
)

// BenchmarkWait waits in memory: for a token that is there, and behind others for one that is not.
func BenchmarkWait(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.Run("at once", func(b *testing.B) {
		l := must(NewLimiter(NewMemory(), PerSecond(1e9).Burst(1e6)))
		b.ReportAllocs()
		for b.Loop() {
			_ = l.Wait(ctx, "k")
		}
	})
	b.Run("in line", func(b *testing.B) {
		l := must(NewLimiter(NewMemory(), PerSecond(100_000).Burst(1)))
		b.ReportAllocs()
		b.SetParallelism(100)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				_ = l.Wait(ctx, "k")
			}
		})
	})
}
