package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// router is a hook that sends each command to one of its servers by the key that comes first, or by
// the part of it in braces, as proxies do.
type router struct {
	servers []*redis.Client
	whole   bool // the whole key counts
}

func (r *router) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *router) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return r.server(cmd.Args()).Process(ctx, cmd)
	}
}

func (r *router) ProcessPipelineHook(redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var errs []error
		for _, cmd := range cmds {
			errs = append(errs, r.server(cmd.Args()).Process(ctx, cmd))
		}
		return errors.Join(errs...)
	}
}

func (r *router) server(args []any) *redis.Client {
	place := 1
	if name := fmt.Sprint(args[0]); strings.HasPrefix(name, "eval") {
		place = 3
	}
	if len(args) <= place {
		return r.servers[0]
	}
	key := fmt.Sprint(args[place])
	if !r.whole {
		_, key, _ = strings.Cut(key, "{")
		key, _, _ = strings.Cut(key, "}")
	}
	sum := 0
	for _, b := range []byte(key) {
		sum += int(b)
	}
	return r.servers[sum%len(r.servers)]
}

// routed is a client of a proxy for some servers.
func routed(t *testing.T, r *router, servers ...*redistest.Server) *redis.Client {
	t.Helper()
	for _, s := range servers {
		server := redis.NewClient(&redis.Options{Addr: s.Addr})
		t.Cleanup(func() { _ = server.Close() })
		r.servers = append(r.servers, server)
	}
	client := redis.NewClient(&redis.Options{Addr: servers[0].Addr})
	t.Cleanup(func() { _ = client.Close() })
	client.AddHook(r)
	return client
}

// A store refuses servers on which one script does not reach all keys, and says what to use.
func TestUnusableServers(t *testing.T) {
	two := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	lone := redistest.Start(t, "--cluster-enabled", "yes")
	allSlots := []string{"CLUSTER", "ADDSLOTS"} // Redis 6.2 has no ADDSLOTSRANGE
	for slot := range 16384 {
		allSlots = append(allSlots, strconv.Itoa(slot))
	}
	if _, err := lone.Do(t.Context(), allSlots...); err != nil {
		t.Fatal(err)
	}
	until(t, "the Cluster of one is up", func() bool { // two seconds after its start
		info, err := lone.Do(t.Context(), "CLUSTER", "INFO")
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	for name, c := range map[string]struct {
		client *redis.Client
		proxy  bool
		want   string // "": usable
	}{
		"server":             {routed(t, &router{}, two[0]), false, ""},
		"server, as a proxy": {routed(t, &router{}, two[0]), true, ""},
		"proxy":              {routed(t, &router{}, two...), false, "redis+proxy://"},
		"proxy, named":       {routed(t, &router{}, two...), true, ""},
		"proxy of whole keys": {routed(t, &router{whole: true}, two...), true,
			"enable_hashtagging"},
		"Cluster": {direct(t, sharedCluster(t).Addrs[1]), false,
			"; this is a Cluster: use redis+cluster://"},
		"Cluster of one": {direct(t, lone.Addr), false,
			"(or redis+proxy:// if it refuses CLUSTER)"},
		"Cluster of one, a proxy": {direct(t, lone.Addr), true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := redisstore.New(c.client, redisstore.Options{Prefix: t.Name(), Proxy: c.proxy})
			if err != nil {
				t.Fatal(err)
			}
			r := headgate.Request{Key: "k", Limit: headgate.PerHour(5), Cost: 1}
			_, err = s.Take(t.Context(), r)
			for range 2 {
				switch {
				case c.want == "" && err != nil:
					t.Error(err)
				case c.want != "" &&
					(!errors.Is(err, errors.ErrUnsupported) ||
						!strings.Contains(err.Error(), c.want)):
					t.Errorf("%v; want an ErrUnsupported with %q", err, c.want)
				}
				err = s.Ping(t.Context())
			}
			if n := s.Stats().Requests; c.want != "" && n != 0 {
				t.Errorf("%d requests are sent", n)
			}
		})
	}
}

func direct(t *testing.T, addr string) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// A server that has lost its scripts is probed again, and one that has not is not.
func TestAChangedServerIsProbedAgain(t *testing.T) {
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t)}
	proxy := &router{}
	client := routed(t, proxy, servers[0])
	s, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	take := func() error {
		_, err := s.Take(t.Context(),
			headgate.Request{Key: "k", Limit: headgate.PerHour(50), Cost: 1})
		return err
	}
	for range 3 {
		if err := take(); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := servers[0].Do(t.Context(), "INFO", "commandstats"); err != nil ||
		!strings.Contains(got, "cmdstat_del:calls=2,") {
		t.Errorf("want two probes: one before the first request, and one after that loaded its "+
			"script: %s, %v", got, err)
	}
	proxy.servers = append(proxy.servers, direct(t, servers[1].Addr)) // now a proxy of two
	if _, err := servers[0].Do(t.Context(), "SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	if err := take(); err != nil {
		t.Errorf("the request that loads the script: %v", err)
	}
	if err := take(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v; want an ErrUnsupported", err)
	}
	one := proxy.servers[:1]
	two := proxy.servers
	proxy.servers = one
	if err := take(); err != nil {
		t.Errorf("after the proxy is gone: %v", err)
	}
	proxy.servers = two // which knows the scripts already
	s.ProbeNext()
	if err := take(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a minute later: %v; want an ErrUnsupported", err)
	}
}

// A caller that waits for a permit behind a proxy gets it without a notification.
func TestPermitsBehindAProxy(t *testing.T) {
	client := routed(t, &router{}, redistest.Start(t), redistest.Start(t))
	s, err := redisstore.New(client, redisstore.Options{Proxy: true})
	if err != nil {
		t.Fatal(err)
	}
	limiter, err := concurrency.New(s, 1, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	first, err := limiter.Wait(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for limiter.Waiting("k") == 0 {
			runtime.Gosched()
		}
		_ = first.Release(t.Context())
	}()
	if _, err := limiter.Wait(t.Context(), "k"); err != nil { // an hour, or the test's time limit
		t.Error(err)
	}
}

// A server of 32 bits is refused, with and without a probe, because its Lua would lose the upper
// half of each time. scripts/redises runs this with such a server.
func TestBitsOfTheServer(t *testing.T) {
	info, err := redistest.Shared(t).Do(t.Context(), "INFO", "server")
	if err != nil {
		t.Fatal(err)
	}
	refused := strings.Contains(info, "arch_bits:32")
	check := func(what string, err error) {
		t.Helper()
		if refused != errors.Is(err, errors.ErrUnsupported) || !refused && err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	client := newClient(t)
	probes, err := redisstore.New(client, redisstore.Options{Prefix: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	check("ping", probes.Ping(t.Context()))
	skips := newStore(t, client)
	for _, limit := range everyAlgorithm {
		r := headgate.Request{Key: "k", Limit: parse(t, limit), Cost: 1}
		for i, s := range []*redisstore.Store{probes, skips} {
			_, err := s.Take(t.Context(), r)
			check(fmt.Sprint(limit, " ", i), err)
			rs := []headgate.Request{r, {Key: "k", Limit: headgate.PerHour(5), Cost: 1}}
			check(limit+" together", s.TakeAll(t.Context(), rs, make([]headgate.Decision, 2)))
		}
	}
	_, err = skips.AcquirePermit(t.Context(),
		concurrency.Request{Key: "p", Limit: 1, TTL: time.Second})
	check("permits", err)
}
