package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// BenchmarkScript measures the server's time for a decision, with the algorithm that it
// needs alone in the script and with all five.
func BenchmarkScript(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { _ = client.Close() })
	rs := []headgate.Request{{Key: "k", Limit: headgate.TokenBucket(1_000_000, 1_000_000, 1e9), Cost: 1}}
	for name, set := range map[string]algorithms{"one algorithm": algorithmsOf(rs), "all algorithms": 1<<len(parts) - 2} {
		b.Run(name, func(b *testing.B) {
			client.ConfigResetStat(b.Context())
			for b.Loop() {
				if _, err := scriptFor(set).Run(b.Context(), client, []string{"hg:{k}:bench"}, arguments(rs, 0, true)); err != nil {
					b.Fatal(err)
				}
			}
			reportServer(b, client)
		})
	}
}

// reportServer reports the server's time for a script call since the statistics were reset.
func reportServer(b *testing.B, client *redis.Client) {
	b.Helper()
	_, stats, _ := strings.Cut(client.Info(b.Context(), "commandstats").Val(), "cmdstat_evalsha:")
	_, stats, _ = strings.Cut(stats, "usec_per_call=")
	var micros float64
	if _, err := fmt.Sscanf(stats, "%f", &micros); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(micros, "server-us/op")
}

// BenchmarkHeld measures the server's time for a decision on a key of which no grant may be taken
// back, and of one of which as many may as are kept.
func BenchmarkHeld(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := headgate.Request{Key: "k", Limit: headgate.TokenBucket(1_000_000, 1_000_000, 1e9)}
	take := func(b *testing.B, cost int64, hold time.Duration) {
		r.Cost, r.Hold = cost, hold
		if r.Ticket++; hold == 0 {
			r.Ticket = 0
		}
		if _, err := s.Take(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	for _, held := range []int{0, 1024} {
		r.Ticket = 1 << 32
		for range held {
			take(b, 1, time.Hour)
		}
		for name, cost := range map[string]int64{"look": 0, "take": 1} {
			b.Run(fmt.Sprint(name, " beside ", held), func(b *testing.B) {
				client.ConfigResetStat(b.Context())
				for b.Loop() {
					take(b, cost, 0)
				}
				reportServer(b, client)
			})
		}
	}
}
