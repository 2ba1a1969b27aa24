package redisstore_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// Instances that have just joined decide nothing by a share: those that were there before do not
// count them yet. Together they keep the limit, however the server fails.
func TestInstancesThatJoinBeforeAnOutageKeepTheLimit(t *testing.T) {
	for _, c := range []struct{ least, granted int64 }{{0, 0}, {4, 8}} {
		server := redistest.Start(t)
		client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1,
			DialerRetries: 1})
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
				if take(t, s,
					headgate.Request{Key: "k", Limit: parse(t, "10/h"), Cost: 1}).Allowed() {
					granted++
				}
			}
		}
		if granted != c.granted { // a share of 10 for 4 instances is 2
			t.Errorf("MinInstances %d: %d granted of 10; want %d", c.least, granted, c.granted)
		}
	}
}
