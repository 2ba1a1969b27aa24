package redisstore_test

import (
	"fmt"
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
	settle(t, 2, fleet, join(t, inRedis, redisstore.FleetOptions{Interval: time.Hour}))
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

// Instances that have just joined decide nothing by a share: those that were there before do not
// count them yet. Together they keep the limit, however the server fails.
func TestInstancesThatJoinBeforeAnOutageKeepTheLimit(t *testing.T) {
	for _, c := range []struct{ least, granted int64 }{{0, 0}, {4, 8}} {
		server := redistest.Start(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, DialerRetries: 1})
		t.Cleanup(func() { _ = client.Close() })
		inRedis := newStore(t, client)
		var all []*fallback.Store
		for range 4 {
			fleet := join(t, inRedis, redisstore.FleetOptions{
				Interval: time.Hour, MinInstances: int(c.least),
			})
			s, err := fallback.New(inRedis, fallback.Options{
				Mode: fallback.Local, Instances: fleet.Instances,
				Timeout: 20 * time.Second, Failures: 1, OpenTimeout: time.Hour,
			})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		server.Stop()
		granted := int64(0)
		for range 10 {
			for _, s := range all {
				if take(t, s, headgate.Request{Key: "k", Limit: parse(t, "10/h"), Cost: 1}).Allowed() {
					granted++
				}
			}
		}
		if granted != c.granted { // a share of 10 for 4 instances is 2
			t.Errorf("MinInstances %d: %d granted of 10; want %d", c.least, granted, c.granted)
		}
	}
}

// A value that is no state concerns its key: the mode decides for it, and Redis for all others.
func TestADamagedValueOpensNoCircuit(t *testing.T) {
	client := newClient(t)
	inRedis := newStore(t, client)
	for mode, allowed := range map[fallback.Mode]int{
		fallback.Closed: 0, fallback.Open: 200, fallback.Local: 5,
	} {
		o := fallback.Options{Mode: mode, Timeout: 20 * time.Second, OpenTimeout: time.Hour}
		if mode == fallback.Local {
			o.Instances = func() int { return 2 }
		}
		o.OnChange = func(_ bool, err error) { t.Errorf("mode %d: the circuit opened: %v", mode, err) }
		s, err := fallback.New(inRedis, o)
		if err != nil {
			t.Fatal(err)
		}
		r := headgate.Request{Limit: parse(t, "10/h"), Cost: 1}
		client.Set(t.Context(), inRedis.Name("text", r.Limit), "garbage", 0)
		client.Del(t.Context(), inRedis.Name("list", r.Limit))
		client.LPush(t.Context(), inRedis.Name("list", r.Limit), "garbage")
		granted := map[string]int{}
		for i := range 200 {
			for _, key := range []string{"text", "list"} {
				r.Key = key
				if d := take(t, s, r); !d.Degraded() {
					t.Fatalf("mode %d, %s: %+v", mode, key, d)
				} else if d.Allowed() {
					granted[key]++
				}
			}
			r.Key = fmt.Sprint(mode, i)
			if d := take(t, s, r); d.Degraded() || !d.Allowed() {
				t.Fatalf("mode %d: another key: %+v", mode, d)
			}
		}
		if granted["text"] != allowed || granted["list"] != allowed {
			t.Errorf("mode %d: granted %v; want %d", mode, granted, allowed)
		}
		if stats := s.Stats(); stats.Degraded || stats.Failures != 400 {
			t.Errorf("mode %d: %+v", mode, stats)
		}
	}
}
