package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/environment"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

func TestMain(m *testing.M) {
	fallbackTimeout = time.Minute
	os.Exit(m.Run())
}

// take decides a request, and fails the test if the store does not answer.
func take(t *testing.T, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d, err := s.Take(ctx, r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// While Redis is away each policy answers as it says, and it decides again when Redis is back.
func TestPolicies(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for policy, allowed := range map[config.Policy]bool{
		config.Closed: false, config.Open: true, config.Share: true,
	} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			testPolicy(t, redis.Addr, policy, allowed)
		})
	}
}

func testPolicy(t *testing.T, address string, policy config.Policy, allowed bool) {
	t.Helper()
	proxy := redistest.StartProxy(t, address)
	var log buffer
	s, err := openURL("redis://"+proxy.Addr+"?prefix="+string(policy), policy, 1, 0,
		slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := headgate.Request{Key: "k", Limit: headgate.PerHour(100), Cost: 1}
	if d := takeFromRedis(t, s.cached, r); !d.Allowed() {
		t.Fatalf("with Redis: %+v", d)
	}
	before := len(log.String())
	proxy.Cut(1)
	for range 10 {
		if d := take(t, s.cached, r); d.Degraded() && d.Allowed() != allowed {
			t.Errorf("without Redis: %+v", d)
		}
	}
	if !s.fallback.Stats().Degraded || !strings.Contains(log.String()[before:], "the store failed") {
		t.Errorf("the circuit is not open: %+v\n%s", s.fallback.Stats(), log.String())
	}
	proxy.Heal()
	takeFromRedis(t, s.bare, r)
}

// A decision has a time budget of its own, whatever the client of Redis waits for.
func TestTimeBudget(t *testing.T) {
	proxy := redistest.StartProxy(t, redistest.Start(t).Addr)
	proxy.Delay(time.Hour)
	s, err := openURL("redis://"+proxy.Addr+redistest.Patient, config.Open, 1, 50*time.Millisecond,
		slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r := headgate.Request{Key: "k", Limit: headgate.PerHour(1), Cost: 1}
	if d := take(t, s.cached, r); !d.Degraded() || !d.Allowed() {
		t.Errorf("without an answer: %+v", d)
	}
}

// takeFromRedis returns the first decision of Redis, whose answers may be late before.
func takeFromRedis(t *testing.T, s headgate.Store, r headgate.Request) (d headgate.Decision) {
	t.Helper()
	eventually.True(t, "Redis decides", func() bool {
		d = take(t, s, r)
		return !d.Degraded()
	})
	return d
}

// A damaged value in Redis concerns its key. All others are decided by Redis, under every policy.
func TestADamagedValueConcernsItsKey(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	for _, policy := range []config.Policy{config.Closed, config.Open, config.Share} {
		var log buffer
		prefix := string(policy) + ":"
		s, err := openURL("redis://"+redis.Addr+"?prefix="+prefix, policy, 2, 0,
			slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		r := headgate.Request{Limit: headgate.PerHour(100), Cost: 1}
		if _, err := redis.Do(t.Context(), "SET", prefix+"{all}:"+r.Limit.ID(), "garbage"); err != nil {
			t.Fatal(err)
		}
		for range 30 {
			r.Key = "all"
			if d := take(t, s.cached, r); !d.Degraded() || d.Allowed() != (policy != config.Closed) {
				t.Errorf("%s: the damaged key: %+v", policy, d)
			}
			r.Key = "other"
			takeFromRedis(t, s.cached, r)
		}
		if strings.Contains(log.String(), "BADSTATE") {
			t.Errorf("%s: the key opened the circuit\n%s", policy, log.String())
		}
	}
}

// An instance that starts without Redis does not know how many there are. It denies all requests,
// and says so, unless the file has the number: then it decides by its share at once.
func TestShareOfAnInstanceThatStartsWithoutRedis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		instances       int
		allowed         int
		decides, logged string
	}{
		{0, 0, "unknown", "the number of instances is not known"},
		{4, 25, "share", "the fallback decides"},
	} {
		var log buffer
		s, err := openURL("redis://127.0.0.1:1", config.Share, c.instances, 0,
			slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		allowed := 0
		for range 100 {
			r := headgate.Request{Key: "k", Limit: headgate.PerHour(100), Cost: 1}
			if take(t, s.bare, r).Allowed() {
				allowed++
			}
		}
		if allowed != c.allowed || s.withoutStore() != c.decides ||
			!strings.Contains(log.String(), c.logged) {
			t.Errorf("%+v: %d allowed, %s decides\n%s", c, allowed, s.withoutStore(), log.String())
		}
	}
}

// A forced charge of a key that was denied goes to the store, and not to the cache of denials.
func TestForcedChargesPassTheCache(t *testing.T) {
	t.Parallel()
	s, err := openURL("redis://"+redistest.Start(t).Addr, config.Closed, 0, 0, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	var ds [4]headgate.Decision
	for try, until := 0, time.Now().Add(time.Minute); ; try++ { // an answer may be late
		r := headgate.Request{
			Key: fmt.Sprint(try), Limit: headgate.FixedWindow(1, time.Hour), Cost: 1,
		}
		for i := range ds {
			r.Force = i == 3
			ds[i] = take(t, s.cached, r)
		}
		if !slices.ContainsFunc(ds[:], headgate.Decision.Degraded) {
			break
		}
		if time.Now().After(until) {
			t.Fatal("Redis does not decide")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !ds[0].Allowed() || ds[1].Allowed() || ds[2].Allowed() {
		t.Errorf("%+v, want only the first allowed", ds)
	}
	if ds[3].Remaining != -1 {
		t.Errorf("the forced charge: %+v, want -1 remaining", ds[3])
	}
}

// The environment's Redis has no fallback: its errors are passed on.
func TestEnvironmentPassesErrorsOn(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	variables := map[string]string{
		"REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": redis.Addr, "REDIS_TIMEOUT": "5s",
		"REDIS_PERSECOND": "true", "REDIS_PERSECOND_SOCKET_TYPE": "tcp", "REDIS_PERSECOND_URL": redis.Addr,
	}
	e, err := environment.Read(func(name string) (string, bool) { v, ok := variables[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	s, err := openEnvironment(e)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if err := s.ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := headgate.Request{Key: "k", Limit: headgate.PerHour(1), Cost: 1}
	if d := take(t, s.bare, r); !d.Allowed() {
		t.Errorf("%+v", d)
	}
	redis.Stop()
	if d, err := s.bare.Take(t.Context(), r); err == nil {
		t.Errorf("without Redis: %+v", d)
	}
	if _, err := s.perSecond.Take(t.Context(), r); err == nil {
		t.Error("without Redis, a limit by second is decided")
	}
	if err := s.ping(t.Context()); err == nil || !strings.Contains(err.Error(), redis.Addr) {
		t.Errorf("ping: %v", err)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	var h health
	var told []bool
	h.set(waitsForConfig, true)
	h.tell(func(ready bool) { told = append(told, ready) })
	h.set(waitsForStore, true)
	h.set(waitsForConfig, false)
	if got := h.reason(); got != waitsForStore {
		t.Errorf("reason %q", got)
	}
	h.set(waitsForStore, false)
	h.set(isEnding, true)
	h.set(isEnding, true)
	if len(told) != 3 || told[0] || !told[1] || told[2] {
		t.Errorf("told %v", told)
	}
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu sync.Mutex
	b  strings.Builder
}

// Write implements io.Writer.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

// String returns what was written.
func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// A proxy that closes the connection at HELLO is named.
func TestTwemproxyIsNamed(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 1000))
			_ = c.Close()
		}
	}()
	s := startEnvironment(t, Options{}, "REDIS_SOCKET_TYPE=tcp", "REDIS_URL="+l.Addr().String())
	if err := s.stores.ping(t.Context()); err == nil || !strings.Contains(err.Error(), "twemproxy") {
		t.Errorf("%v; want an error that names twemproxy", err)
	}
}
