package headgate

import (
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

// The comparison with other libraries is in bench/; these are for profiles.

func BenchmarkMemory(b *testing.B) {
	b.Run("hot key", func(b *testing.B) {
		benchmark(b, Per(1_000_000, time.Millisecond).Burst(1_000_000), []string{"user:1234567"})
	})
	keys := make([]string, 1_000_000)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, text := range []string{"100/m", "100/m stepped", "100/m fixed-window",
		"100/m sliding-window", "100/m sliding-log"} {
		l, err := ParseLimit(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("1M keys/"+l.Algorithm().String(), func(b *testing.B) { benchmark(b, l, keys) })
	}
}

func benchmark(b *testing.B, l Limit, keys []string) {
	limiter, err := NewLimiter(NewMemorySize(1_000_000), l)
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

// The figures of ARCHITECTURE.md on what a decision is made of.

type fourWords struct{ a, b, c, d int64 }

type fiveWords struct{ a, b, c, d, e int64 }

//go:noinline
func returnFour(n int64) fourWords { return fourWords{n, n, n, n} }

//go:noinline
func returnFive(n int64) fiveWords { return fiveWords{n, n, n, n, n} }

func BenchmarkReturn(b *testing.B) {
	b.Run("4 words", func(b *testing.B) {
		for i := range int64(b.N) {
			if w := returnFour(i); w.a+w.b+w.c+w.d != 4*i {
				b.Fatal(w)
			}
		}
	})
	b.Run("5 words", func(b *testing.B) {
		for i := range int64(b.N) {
			if w := returnFive(i); w.a+w.b+w.c+w.d+w.e != 5*i {
				b.Fatal(w)
			}
		}
	})
}

// BenchmarkFullLog refuses what waits for all of a log of 65,535 entries to end.
func BenchmarkFullLog(b *testing.B) {
	m := NewMemorySize(10)
	l := SlidingLog(maxLog, time.Hour)
	at := time.Now()
	for i := range maxLog {
		ask(b, m, "key", l, 1, at.Sub(midnight)+time.Duration(i)*time.Microsecond)
	}
	for b.Loop() {
		ask(b, m, "key", l, maxLog, at.Sub(midnight)+maxLog*time.Microsecond)
	}
}
