package headgate

import (
	"testing"
	"time"
)

// hotLease is a Lease that has tokens of key k ahead.
func hotLease(tb testing.TB) (*Lease, Limit) {
	tb.Helper()
	limit := PerSecond(1e12).Burst(1e12)
	l := must(NewLease(NewMemory(100), LeaseOptions{Term: time.Minute}))
	row, hash := l.demands.row("k", limit)
	n := newLoan(lending{limit: limit, term: time.Hour}, "k", 1e15)
	n.left, n.until = n.size, int64(time.Hour)
	row.begin(hash, 0, 1).loan = n
	return l, limit
}

func BenchmarkLease(b *testing.B) {
	l, limit := hotLease(b)
	b.Run("one", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			must(l.Take(b.Context(), Request{Key: "k", Limit: limit, Cost: 1}))
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				must(l.Take(b.Context(), Request{Key: "k", Limit: limit, Cost: 1}))
			}
		})
	})
	b.Run("cold", func(b *testing.B) { // what it costs besides the call
		b.ReportAllocs()
		r := Request{Key: "cold", Limit: SlidingWindow(10, time.Second), Cost: 1}
		for b.Loop() {
			row, hash := l.demands.row(r.Key, r.Limit)
			l.spend(row, hash, &r)
			row.begin(hash, 0, 1).count(1, 0, 1)
		}
	})
}
