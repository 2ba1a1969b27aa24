package headgate_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// BenchmarkDenyCache is of denials that are served from it.
func BenchmarkDenyCache(b *testing.B) {
	keys := make([]string, 10_000)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	bucket, day := headgate.PerDay(7).Burst(5), headgate.FixedWindow(1000, 24*time.Hour)
	b.Run("hot key", func(b *testing.B) { benchmarkDenied(b, keys[:1], 1, bucket) })
	b.Run("hot key/other cost", func(b *testing.B) { benchmarkDenied(b, keys[:1], 5, headgate.PerDay(4).Burst(5)) })
	b.Run("hot key/two limits", func(b *testing.B) { benchmarkDenied(b, keys[:1], 1, bucket, day) })
	b.Run("10k keys", func(b *testing.B) { benchmarkDenied(b, keys, 1, bucket) })
}

func benchmarkDenied(b *testing.B, keys []string, cost int64, limits ...headgate.Limit) {
	cache := newDenyCache(b, headgate.NewMemory(0), headgate.DenyCacheOptions{Keys: 1 << 16, MaxTrust: time.Hour})
	limiter, err := headgate.NewLimiter(cache, limits...)
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys {
		for range 7 {
			if _, err := limiter.Allow(b.Context(), key); err != nil {
				b.Fatal(err)
			}
		}
	}
	ctx, i, before := b.Context(), 0, cache.Stats()
	b.ReportAllocs()
	for b.Loop() {
		if d, err := limiter.AllowN(ctx, keys[i], cost); err != nil || d.Allowed() {
			b.Fatal(d, err)
		}
		if i++; i == len(keys) {
			i = 0
		}
	}
	after := cache.Stats()
	b.ReportMetric(float64(after.Asked-before.Asked)/float64(b.N), "asked/op")
}
