package headgate_test

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// The comparison with other libraries is in bench/; these are for profiles.

func BenchmarkMemory(b *testing.B) {
	b.Run("hot key", func(b *testing.B) {
		benchmark(b, headgate.Per(1_000_000, time.Millisecond).Burst(1_000_000), []string{"user:1234567"})
	})
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, text := range []string{"100/m", "100/m stepped", "100/m fixed-window", "100/m sliding-window", "100/m sliding-log"} {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("1M keys/"+l.Algorithm().String(), func(b *testing.B) { benchmark(b, l, keys) })
	}
}

func benchmark(b *testing.B, l headgate.Limit, keys []string) {
	limiter, err := headgate.NewLimiter(headgate.NewMemory(1_000_000), l)
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys {
		if _, err := limiter.Allow(b.Context(), key); err != nil {
			b.Fatal(err)
		}
	}
	ctx, i := b.Context(), 0
	b.ReportAllocs()
	for b.Loop() {
		if _, err := limiter.Allow(ctx, keys[i]); err != nil {
			b.Fatal(err)
		}
		if i++; i == len(keys) {
			i = 0
		}
	}
}
