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

// BenchmarkHeld measures the server's time for a decision while so many grants of its key may
// still be taken back.
func BenchmarkHeld(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		b.Fatal(err)
	}
	l := headgate.TokenBucket(1_000_000, 1_000_000, 1e9)
	for _, held := range []int{0, 16, 128, 1024} {
		take := func(ticket uint64) {
			r := headgate.Request{Key: fmt.Sprint(held), Limit: l, Cost: 1, Ticket: ticket}
			if ticket != 0 {
				r.Hold = time.Hour
			}
			if _, err := s.Take(b.Context(), r); err != nil {
				b.Fatal(err)
			}
		}
		for i := range held {
			take(uint64(i + 1))
		}
		for _, way := range []struct {
			name string
			r    headgate.Request
		}{
			{"look", headgate.Request{}}, {"plain", headgate.Request{Cost: 1}},
			{"held", headgate.Request{Cost: 1, Ticket: 1 << 40, Hold: 1}},
		} {
			b.Run(fmt.Sprint(way.name, "/", held), func(b *testing.B) {
				client.ConfigResetStat(b.Context())
				for b.Loop() {
					way.r.Key, way.r.Limit = fmt.Sprint(held), l
					if way.r.Ticket != 0 {
						way.r.Ticket++
					}
					if _, err := s.Take(b.Context(), way.r); err != nil {
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
}
