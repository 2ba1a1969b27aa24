package environment

import (
	"context"
	"log/slog"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/redis/go-redis/v9"
)

// reader looks names up in pairs of name=value.
func reader(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if n, value, _ := strings.Cut(p, "="); n == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestDefaults(t *testing.T) {
	s, err := Read(reader("USE_STATSD=false"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Settings{
		HTTP: "0.0.0.0:8080", GRPC: "0.0.0.0:8081", Debug: "0.0.0.0:6070", MetricsPath: "/metrics",
		MaxAge: 24 * time.Hour, MaxAgeGrace: time.Hour, LogLevel: slog.LevelWarn,
		Runtime: config.Runtime{Root: "/srv/runtime_data/current", AppDirectory: "config", WatchRoot: true},
		Limiter: envoy.Options{NearLimitRatio: 0.8},
		Redis: Redis{
			Type: "SINGLE", Network: "unix", Addresses: []string{"/var/run/nutcracker/ratelimit.sock"},
			PoolSize: 10, Timeout: 10 * time.Second,
		},
	}
	if s.lookup = nil; !reflect.DeepEqual(s, want) {
		t.Errorf("%+v\nwant %+v", s, want)
	}
}

// The names of the header fields have defaults, and count only if fields are sent.
func TestHeaders(t *testing.T) {
	s, err := Read(reader("LIMIT_RESPONSE_HEADERS_ENABLED=true", "LIMIT_RESET_HEADER=Reset"))
	want := envoy.Options{
		NearLimitRatio: 0.8, LimitHeader: "RateLimit-Limit",
		RemainingHeader: "RateLimit-Remaining", ResetHeader: "Reset",
	}
	if err != nil || !reflect.DeepEqual(s.Limiter, want) {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestRead(t *testing.T) {
	s, err := Read(reader("HOST=::", "PORT=80", "GRPC_UDS=/run/rl.sock", "LOG_LEVEL=Debug", "LOG_FORMAT=json",
		"USE_PROMETHEUS=true", "PROMETHEUS_ADDR=:19001", "EXTRA_TAGS=a:b,c:d", "NEAR_LIMIT_RATIO=0.5",
		"REDIS_TYPE=sentinel", "REDIS_URL=mymaster,h:1,h:2", "REDIS_AUTH=u:p:q",
		"REDIS_PERSECOND=true", "REDIS_PERSECOND_TYPE=CLUSTER", "REDIS_PERSECOND_URL=a:1,b:2",
		"CONFIG_TYPE=GRPC_XDS_SOTW", "CONFIG_GRPC_XDS_NODE_ID=n"))
	if err != nil {
		t.Fatal(err)
	}
	if s.HTTP != "[::]:80" || s.GRPC != "unix:/run/rl.sock" || s.LogLevel != slog.LevelDebug || !s.LogJSON ||
		s.Metrics != ":19001" || s.ExtraTags["c"] != "d" || s.Limiter.NearLimitRatio != 0.5 {
		t.Errorf("%+v", s)
	}
	if s.Redis.Master != "mymaster" || !slices.Equal(s.Redis.Addresses, []string{"h:1", "h:2"}) {
		t.Errorf("sentinels: %+v", s.Redis)
	}
	if user, password := split(s.Redis.Auth); user != "u" || password != "p:q" {
		t.Errorf("user %q, password %q", user, password)
	}
	if s.PerSecond == nil || !slices.Equal(s.PerSecond.Addresses, []string{"a:1", "b:2"}) {
		t.Errorf("per second: %+v", s.PerSecond)
	}
	if s.XDS == nil || s.XDS.NodeID != "n" || s.XDS.Server != "localhost:18000" {
		t.Errorf("xds: %+v", s.XDS)
	}
	for _, kind := range []*Redis{&s.Redis, s.PerSecond} {
		client, err := kind.Client()
		if err != nil {
			t.Fatal(err)
		}
		client.Close()
	}
}

// No client sends CLIENT SETINFO, which the user of docs/redis.md may not do.
func TestClientsSendNoIdentity(t *testing.T) {
	for _, kind := range []string{"SINGLE", "CLUSTER", "SENTINEL"} {
		client, err := (&Redis{Type: kind, Addresses: []string{"h:1"}, Master: "m"}).Client()
		if err != nil {
			t.Fatal(err)
		}
		off := false
		switch c := client.(type) {
		case *redis.Client:
			off = c.Options().DisableIdentity
		case *redis.ClusterClient:
			off = c.Options().DisableIdentity
		}
		if !off {
			t.Errorf("%s: the client sends its identity", kind)
		}
		client.Close()
	}
}

func TestWrong(t *testing.T) {
	for pair, want := range map[string]string{
		"PORT=x":                      `PORT is "x"; want a whole number, 0 or more`,
		"PORT=70000":                  "PORT is 70000; want 0 to 65535",
		"GRPC_MAX_CONNECTION_AGE=5":   `GRPC_MAX_CONNECTION_AGE is "5"; want a time with its unit, such as 10s`,
		"SHADOW_MODE=perhaps":         `SHADOW_MODE is "perhaps"; want true or false`,
		"NEAR_LIMIT_RATIO=NaN":        `NEAR_LIMIT_RATIO is "NaN"; want a number from 0 to 1, such as 0.8`,
		"LOG_LEVEL=loud":              `LOG_LEVEL is "loud"; want debug, info, warn or error`,
		"REDIS_TYPE=ring":             `REDIS_TYPE is "ring"; want SINGLE or SENTINEL or CLUSTER`,
		"REDIS_URL=a:1,b:2":           "REDIS_TYPE SENTINEL or CLUSTER",
		"EXTRA_TAGS=a":                `EXTRA_TAGS is "a"; want name:value,name:value`,
		"BACKEND_TYPE=memcache":       `BACKEND_TYPE is "memcache", which is not supported; want redis`,
		"GRPC_SERVER_USE_TLS=true":    "GRPC_SERVER_USE_TLS is true without",
		"CONFIG_TYPE=GRPC_XDS_DELTA":  "want FILE or GRPC_XDS_SOTW",
		"LOCAL_CACHE_SIZE_IN_BYTES=-": "LOCAL_CACHE_SIZE_IN_BYTES",
	} {
		_, err := Read(reader(pair))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", pair, err, want)
		}
	}
	_, err := Read(reader("PORT=x", "GRPC_PORT=y"))
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("not all faults are reported: %v", err)
	}
}

func TestWarnings(t *testing.T) {
	s, err := Read(reader())
	if err != nil || len(s.Warnings) != 1 || !strings.HasPrefix(s.Warnings[0], "USE_STATSD is true by default") {
		t.Errorf("without variables: %q, %v", s.Warnings, err)
	}
	s, err = Read(reader("USE_STATSD=true", "TRACING_ENABLED=false", "REDIS_PIPELINE_LIMIT=3"))
	if err != nil || len(s.Warnings) != 2 || !strings.HasPrefix(s.Warnings[1], "REDIS_PIPELINE_LIMIT is set") {
		t.Errorf("%q, %v", s.Warnings, err)
	}
}

// Every variable of envoyproxy/ratelimit is read, or has a warning. The list is that of its
// settings as of January 2026.
func TestEveryName(t *testing.T) {
	list, err := os.ReadFile("testdata/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	read := make(map[string]bool)
	switches := []string{
		"GRPC_SERVER_USE_TLS=true", "GRPC_SERVER_TLS_CERT=c", "GRPC_SERVER_TLS_KEY=k", "USE_PROMETHEUS=true",
		"REDIS_PERSECOND=true", "CONFIG_TYPE=GRPC_XDS_SOTW",
	}
	_, err = Read(func(name string) (string, bool) {
		read[name] = true
		return reader(switches...)(name)
	})
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?m)^[A-Z_]+$`).FindAllString(string(list), -1)
	if len(names) < 100 {
		t.Fatalf("%d names", len(names))
	}
	for _, name := range names {
		if !read[name] {
			t.Errorf("%s is neither read nor has a warning", name)
		}
	}
}

func TestRedisTLS(t *testing.T) {
	for _, r := range []Redis{
		{TLS: true, CA: "nowhere"},
		{TLS: true, CA: "environment.go"}, // which holds no certificate
		{TLS: true, Cert: "nowhere", Key: "nowhere"},
	} {
		if _, err := r.Client(); err == nil || !strings.HasPrefix(err.Error(), "REDIS_TLS_") {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

// A connection that is refused is an error at once, and one that says so.
func TestRedisThatRefuses(t *testing.T) {
	for _, kind := range []string{"SINGLE", "SENTINEL", "CLUSTER"} {
		r := Redis{
			Type: kind, Network: "tcp", Addresses: []string{"127.0.0.1:1"}, Master: "m",
			PoolSize: 1, Timeout: 10 * time.Second,
		}
		for try := 1; ; try++ { // a busy machine may be late, but not each time
			client, err := r.Client()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // less than five tries
			err = client.Process(ctx, noRetries{redis.NewStatusCmd(ctx, "ping")})
			cancel()
			_ = client.Close()
			if err != nil && strings.Contains(err.Error(), "refused") {
				break
			}
			if try == 20 {
				t.Fatalf("%s: %v", kind, err)
			}
		}
	}
}

// noRetries is a command that go-redis sends once, as the stores do.
type noRetries struct{ *redis.StatusCmd }

func (noRetries) NoRetry() bool { return true }

// Variables count as ignored if one of them is of envoyproxy/ratelimit and no other program.
func TestIgnored(t *testing.T) {
	generic := []string{
		"PORT=80", "HOST=a", "GRPC_PORT=x", "DEBUG_PORT=1", "LOG_LEVEL=debug", "LOG_FORMAT=json",
		"REDIS_URL=redis://r:6379", "REDIS_AUTH=x", "REDIS_TLS=true", "STATSD_PORT=tcp://10.0.0.1:9125",
		"EXTRA_TAGS=a", "CONFIG_TYPE=x", "BACKEND_TYPE=x", "TRACING_ENABLED=true", "PROMETHEUS_ADDR=:1",
		"CACHE_KEY_PREFIX=a", "REDIS_TIMEOUT=1", "UNKNOWN=1",
	}
	if got := Ignored(reader(generic...)); got != nil {
		t.Errorf("%q of other programs", got)
	}
	for pairs, want := range map[string]string{
		"":                                "",
		"RUNTIME_ROOT=":                   "",
		"RUNTIME_ROOT=/data LOG_LEVEL=x":  "LOG_LEVEL RUNTIME_ROOT",
		"RESPONSE_DYNAMIC_METADATA=true":  "RESPONSE_DYNAMIC_METADATA",
		"REDIS_URL=r:1 SHADOW_MODE=wrong": "REDIS_URL SHADOW_MODE",
		"USE_STATSD=false REDIS_SOCKET_TYPE=tcp REDIS_URL=redis:6379": "REDIS_SOCKET_TYPE REDIS_URL USE_STATSD",
		"EXPIRATION_JITTER_MAX_SECONDS=5":                             "EXPIRATION_JITTER_MAX_SECONDS",
		"MEMCACHE_HOST_PORT=m:11211":                                  "MEMCACHE_HOST_PORT",
		"REDIS_PIPELINE_WINDOW=1ms":                                   "REDIS_PIPELINE_WINDOW",
		"USE_PROMETHEUS=true":                                         "USE_PROMETHEUS",
		"LIMIT_RESPONSE_HEADERS_ENABLED=true GRPC_MAX_CONNECTION_AGE=1m": "GRPC_MAX_CONNECTION_AGE " +
			"LIMIT_RESPONSE_HEADERS_ENABLED",
	} {
		if got := strings.Join(Ignored(reader(strings.Fields(pairs)...)), " "); got != want {
			t.Errorf("%s: %q; want %q", pairs, got, want)
		}
	}
}
