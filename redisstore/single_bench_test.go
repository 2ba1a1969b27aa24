package redisstore

import (
	"context"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// BenchmarkTake measures a lone caller, with and without a context that can end.
func BenchmarkTake(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := headgate.Request{Key: "user:1", Limit: headgate.PerSecond(1_000_000), Cost: 1}
	cancellable, cancel := context.WithCancel(b.Context())
	defer cancel()
	for name, ctx := range map[string]context.Context{"background": context.Background(), "cancellable": cancellable} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Take(ctx, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
