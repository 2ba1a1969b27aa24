package headgate

import (
	"testing"
	"time"
)

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

func BenchmarkPart(b *testing.B) {
	m := NewMemory(0)
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			m.clock.Micros()
		}
	})
	b.Run("new limit", func(b *testing.B) {
		for i := int64(1); b.Loop(); i++ {
			PerMinute(1).Burst(i)
		}
	})
	b.Run("hash and lock", func(b *testing.B) {
		for b.Loop() {
			s := &m.shards[m.shardOf(m.hash("user:1234567"))]
			s.Lock()
			s.Unlock() //nolint:staticcheck // the lock alone is measured
		}
	})
}

// BenchmarkFullLog refuses what waits for all of a log of 65,535 entries to end.
func BenchmarkFullLog(b *testing.B) {
	m := NewMemory(10)
	l := SlidingLog(maxLog, time.Hour)
	at := time.Now()
	for i := range maxLog {
		ask(b, m, "key", l, 1, at.Sub(midnight)+time.Duration(i)*time.Microsecond)
	}
	for b.Loop() {
		ask(b, m, "key", l, maxLog, at.Sub(midnight)+maxLog*time.Microsecond)
	}
}
