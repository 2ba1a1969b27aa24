package redisstore

import (
	"fmt"
	"strings"
	"testing"

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
			_, stats, _ := strings.Cut(client.Info(b.Context(), "commandstats").Val(), "cmdstat_evalsha:")
			_, stats, _ = strings.Cut(stats, "usec_per_call=")
			var micros float64
			if _, err := fmt.Sscanf(stats, "%f", &micros); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(micros, "server-us/op")
		})
	}
}
