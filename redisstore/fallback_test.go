package redisstore_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/eventually"
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

// A server of a Cluster that hangs or is gone keeps the others from no decision: the fallback
// decides its keys alone, and requests for keys of several servers if it is one of them.
func TestOneServerOfAClusterFails(t *testing.T) {
	for fault, fail := range map[string]func(*redistest.Server){
		"hangs":   func(s *redistest.Server) { _ = syscall.Kill(s.Pid, syscall.SIGSTOP) },
		"is gone": (*redistest.Server).Stop,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
			s, err := redisstore.Open("redis+cluster://" + strings.Join(cluster.Addrs, ","))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			f, err := fallback.New(s, fallback.Options{
				Mode: fallback.Open, Timeout: 200 * time.Millisecond, OpenTimeout: time.Hour,
			})
			if err != nil {
				t.Fatal(err)
			}
			permits := f.Permits(s)
			limit := parse(t, "1000000/h")
			first := headgate.Request{Key: "k", Limit: limit, Cost: 1}
			eventually.True(t, "the servers are known", func() bool {
				return !take(t, f, first).Degraded() && s.Servers()("k") != ""
			})
			fail(cluster.Servers[0])
			late := 0 // decisions of living servers, on a busy machine
			for i := range 300 {
				key := strconv.Itoa(i)
				isDead := s.Servers()(key) == cluster.Addrs[0]
				r := first
				r.Key = key
				if d := take(t, f, r); d.Degraded() != isDead {
					late++
				}
				p, err := permits.AcquirePermit(t.Context(), concurrency.Request{
					Key: key, ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour,
				})
				if err != nil || !p.Allowed() {
					t.Fatalf("%+v, %v", p, err)
				}
				rs := []headgate.Request{r, {Key: key + "x", Limit: limit, Cost: 1}}
				ds := make([]headgate.Decision, 2)
				if err := f.TakeAll(t.Context(), rs, ds); err != nil {
					t.Fatal(err)
				}
				isDead = isDead || s.Servers()(key+"x") == cluster.Addrs[0]
				if ds[0].Degraded() != isDead {
					late++
				}
			}
			if late > 30 || !f.Stats().Degraded {
				t.Errorf("%d of 600 decisions by the wrong one, %+v", late, f.Stats())
			}
		})
	}
}
