package observe

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// BenchmarkObserve measures a decision in memory with and without observers.
func BenchmarkObserve(b *testing.B) {
	decided, called := 0, 0
	countDecided := func(context.Context, Event) { decided++ }
	countCalled := func(context.Context, Call) { called++ }
	top := NewTopDenied(0)
	for _, c := range []struct {
		name     string
		observer Observer
	}{
		{"off", Observer{}},
		{"decided", Observer{Decided: countDecided}},
		{"called", Observer{Called: countCalled}},
		{"both", Observer{Decided: countDecided, Called: countCalled}},
		{"top denied", Observer{Decided: top.Decided}},
	} {
		s := must(New(headgate.NewMemory(), c.observer))
		for _, l := range []headgate.Limit{
			headgate.Per(1e6, time.Millisecond).Named("allows"),
			headgate.PerDay(1).Named("denies"),
		} {
			b.Run(c.name+"/"+l.Name(), func(b *testing.B) {
				r := headgate.Request{Key: "user:1234567", Limit: l, Cost: 1}
				b.ReportAllocs()
				for b.Loop() {
					if _, err := s.Take(b.Context(), r); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkTopDenied measures counting a denial with the default number of entries.
func BenchmarkTopDenied(b *testing.B) {
	keys := make([]string, 1<<20)
	for i := range keys {
		keys[i] = "user:" + strconv.Itoa(i)
	}
	zipf := rand.NewZipf(rand.New(rand.NewPCG(7, 8)), 1.1, 1, uint64(len(keys)-1))
	order := make([]uint32, 1<<20)
	for i := range order {
		order[i] = uint32(zipf.Uint64())
	}
	l := headgate.FixedWindow(1, time.Second)
	for _, c := range []struct {
		name string
		next func(i int) int
	}{
		{"one key", func(int) int { return 0 }},
		{"zipf", func(i int) int { return int(order[i]) }},
		{"all new", func(i int) int { return i }},
	} {
		b.Run(c.name, func(b *testing.B) {
			top, i := NewTopDenied(0), 0
			b.ReportAllocs()
			for b.Loop() {
				top.Decided(b.Context(), denial(keys[c.next(i)], l))
				i = (i + 1) & (len(keys) - 1)
			}
		})
	}
}
