package fallback_test

import (
	"context"
	"testing"
	"time"

	"github.com/headgate/headgate/fallback"
)

// What a decision takes: of the store itself, through a fallback while it answers, and
// instead of it.
func BenchmarkTake(b *testing.B) {
	store := newBreakable()
	r := request("1000000/s")
	closed := newStore(b, store, fallback.Options{Pause: time.Hour, Failures: 1})
	local := newStore(b, store, fallback.Options{Mode: fallback.Local, Instances: of(4), Pause: time.Hour, Failures: 1})
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
	ask := func(s *fallback.Store) func(context.Context) error {
		return func(ctx context.Context) error { _, err := s.Take(ctx, r); return err }
	}
	run("alone", func(ctx context.Context) error { _, err := store.Take(ctx, r); return err })
	run("asked", ask(closed))
	run("asked and charged", ask(local))
	store.how.Store(fails)
	run("closed instead", ask(closed))
	run("share instead", ask(local))
}
