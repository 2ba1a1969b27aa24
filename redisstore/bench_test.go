package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// BenchmarkScript measures the server's time for a decision in batches of several sizes, by
// the time that its process has taken, and that of the calls alone.
func BenchmarkScript(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(b).Addr})
	b.Cleanup(func() { _ = client.Close() })
	s, err := New(client, Options{})
	if err != nil {
		b.Fatal(err)
	}
	info := func(section, field string) (n float64) {
		_, text, _ := strings.Cut(client.Info(b.Context(), section).Val(), field)
		_, _ = fmt.Sscanf(text, "%f", &n)
		return n
	}
	for text, limit := range map[string]headgate.Limit{"grants": headgate.Per(1_000_000, 1e9).Burst(1_000_000), "denials": headgate.Per(1, 1e12).Burst(1), "log": headgate.SlidingLog(10, 1e9)} {
		for _, size := range []int{1, 8, 64, 256} {
			b.Run(text+"/"+strconv.Itoa(size), func(b *testing.B) {
				keys := 0
				trip := func() {
					all := newBatch()
					for range size {
						keys = (keys + 7919) % 10_000
						all.add(s.newCall([]headgate.Request{{Key: "user:" + strconv.Itoa(keys), Limit: limit, Cost: 1}}, charge))
					}
					s.decide([]*batch{all})
				}
				for range 2 * 10_000 / size {
					trip()
				}
				client.ConfigResetStat(b.Context())
				before := info("cpu", "used_cpu_user:") + info("cpu", "used_cpu_sys:")
				for b.Loop() {
					trip()
				}
				decisions := float64(b.N * size)
				b.ReportMetric((info("cpu", "used_cpu_user:")+info("cpu", "used_cpu_sys:")-before)*1e6/decisions, "server-us/decision")
				b.ReportMetric(info("commandstats", "cmdstat_evalsha:calls="), "calls")
				for _, command := range []string{"set", "setrange"} { // the two ways to write
					_, stats, _ := strings.Cut(client.Info(b.Context(), "commandstats").Val(), "cmdstat_"+command+":")
					_, stats, _ = strings.Cut(stats, "usec_per_call=")
					micros := 0.0
					_, _ = fmt.Sscanf(stats, "%f", &micros)
					b.ReportMetric(micros, command+"-us")
				}
			})
		}
	}
}
