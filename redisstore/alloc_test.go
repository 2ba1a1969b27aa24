//go:build !race

// Under the race detector sync.Pool forgets at random, and allocations cannot be counted.

package redisstore

import (
	"context"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// A decision for a lone caller takes seven allocations: two for the key, one for the goroutine, one
// for the command, and three in which the client checks its connection.
func TestAllocations(t *testing.T) {
	s, r := loneCaller(t)
	for name, ctx := range map[string]context.Context{"background": context.Background(),
		"cancellable": t.Context()} {
		n := testing.AllocsPerRun(500, func() {
			if _, err := s.Take(ctx, r); err != nil {
				t.Fatal(err)
			}
		})
		if n > 8 { // a pool may be emptied meanwhile
			t.Errorf("%s: %v allocations; want 7", name, n)
		}
	}
}

func loneCaller(tb testing.TB) (*Store, headgate.Request) {
	tb.Helper()
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(tb).Addr})
	tb.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		tb.Fatal(err)
	}
	return s, headgate.Request{Key: "user:1", Limit: headgate.PerSecond(1_000_000), Cost: 1}
}
