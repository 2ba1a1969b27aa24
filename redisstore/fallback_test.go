//go:build unix

package redisstore_test

import (
	"context"
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

// Callers with less time than a slow Redis takes do not open the circuit for others.
func TestCallersWithLessTimeThanRedisTakes(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	s, err := redisstore.Open("redis://" + proxy.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	f, err := fallback.New(s, fallback.Options{Mode: fallback.Open, Timeout: 2 * time.Second,
		OpenTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	r := headgate.Request{Key: "k", Limit: parse(t, "1/h"), Cost: 1}
	take(t, f, r)
	proxy.Delay(300 * time.Millisecond)
	for range 6 {
		ctx, cancel := context.WithTimeout(t.Context(), 320*time.Millisecond)
		_, _ = f.Take(ctx, r)
		cancel()
	}
	if d, err := f.Take(t.Context(), r); err != nil || d.Degraded() || d.Allowed() {
		t.Errorf("a patient caller: %+v, %v", d, err)
	}
}

// A server of a Cluster that hangs or is gone keeps the others from no decision: the fallback
// decides its keys alone, also in requests for keys of several servers.
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
			r := headgate.Request{Key: "k", Limit: parse(t, "1000000/h"), Cost: 1}
			eventually.True(t, "the servers are known", func() bool {
				return !take(t, f, r).Degraded() && s.Servers()("k") != ""
			})
			fail(cluster.Servers[0])
			isDead := func(key string) bool { return s.Servers()(key) == cluster.Addrs[0] }
			wrong := 0 // on a busy machine, a living server can be late
			for i := range 300 {
				wrong += decideThrice(t, f, s, strconv.Itoa(i), isDead)
			}
			if wrong > 30 || !f.Stats().Degraded {
				t.Errorf("%d of 600 decisions by the wrong one, %+v", wrong, f.Stats())
			}
		})
	}
}

// decideThrice asks about a key, its permit, and the key together with another one. It returns how
// often the fallback decided in place of a server that lives, or the other way round.
func decideThrice(
	t *testing.T, f *fallback.Store, s *redisstore.Store, key string, isDead func(string) bool,
) (wrong int) {
	t.Helper()
	r := headgate.Request{Key: key, Limit: parse(t, "1000000/h"), Cost: 1}
	if take(t, f, r).Degraded() != isDead(key) {
		wrong++
	}
	d, err := f.Permits(s).AcquirePermit(t.Context(), concurrency.Request{
		Key: key, ID: concurrency.PermitID{1}, Limit: 1, TTL: time.Hour,
	})
	if err != nil || !d.Allowed() {
		t.Fatalf("%+v, %v", d, err)
	}
	other := r
	other.Key += "x"
	ds := make([]headgate.Decision, 2)
	if err := f.TakeAll(t.Context(), []headgate.Request{r, other}, ds); err != nil {
		t.Fatal(err)
	}
	if ds[0].Degraded() != isDead(key) || ds[1].Degraded() != isDead(other.Key) {
		wrong++
	}
	return wrong
}
