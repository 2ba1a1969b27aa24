package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// TestFallback loses the server and gets it back. Meanwhile shares decide, of as many instances as
// were known.
func TestFallback(t *testing.T) {
	server := redistest.Start(t)
	_, port, _ := strings.Cut(server.Addr, ":")
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { _ = client.Close() })
	inRedis := newStore(t, client)
	fleet := join(t, inRedis, redisstore.FleetOptions{Interval: time.Hour})
	join(t, inRedis, redisstore.FleetOptions{Interval: time.Hour})
	heartbeat(t, fleet, 2)
	s, err := fallback.New(inRedis, fallback.Options{
		Mode: fallback.Local, Instances: fleet.Instances,
		Timeout: 20 * time.Second, Failures: 1, OpenTimeout: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := headgate.Request{Key: "k", Limit: parse(t, "10/h"), Cost: 1}
	if d := take(t, s, r); d.Degraded() || d.Remaining != 9 {
		t.Errorf("with a server: %+v", d)
	}
	server.Stop()
	for left := int64(3); left >= 0; left-- { // of five, one was taken before
		if d := take(t, s, r); !d.Degraded() || d.Remaining != left || d.Limit != r.Limit.Share(2) {
			t.Errorf("without: %+v; want %d left", d, left)
		}
	}
	redistest.Start(t, "--port", port)
	until(t, "a decision of the server", func() bool {
		r.Cost = 0
		return !take(t, s, r).Degraded()
	})
	stats := s.Stats()
	if stats.Degraded || stats.Decisions < 4 || stats.Failures == 0 {
		t.Errorf("%+v", stats)
	}
}
