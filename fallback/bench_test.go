package fallback_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate/fallback"
)

// BenchmarkTake measures a decision of the store itself, through a fallback, and without the store.
func BenchmarkTake(b *testing.B) {
	store := newBreakable()
	r := request("1000000/s")
	closed := newStore(b, store, fallback.Options{Mode: fallback.Closed, OpenTimeout: time.Hour, Failures: 1})
	local := newStore(b, store, fallback.Options{
		Mode: fallback.Local, Instances: of(4), OpenTimeout: time.Hour, Failures: 1,
	})
	run := func(name string, take func(context.Context) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				if err := take(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	through := func(s *fallback.Store) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Take(ctx, r); return err }
	}
	run("alone", func(ctx context.Context) error { _, err := store.Take(ctx, r); return err })
	run("closed circuit, mode Closed", through(closed))
	run("closed circuit, mode Local", through(local))
	store.how.Store(fails)
	run("open circuit, mode Closed", through(closed))
	run("open circuit, mode Local", through(local))
}
