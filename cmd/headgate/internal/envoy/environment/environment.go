// Package environment reads the environment variables of envoyproxy/ratelimit.
//
// Each variable is honoured, or there is one warning that says what happens instead.
package environment

import (
	"errors"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/certs"
	"github.com/headgate/headgate/cmd/headgate/internal/config"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy/xds"
)

// Settings are what the variables say, with the defaults of envoyproxy/ratelimit.
type Settings struct {
	HTTP    string // host:port
	GRPC    string // or unix:PATH
	Debug   string
	Metrics string // empty: off

	MetricsPath      string
	TLS              certs.Files   // of the gRPC listener; without Cert there is none
	MaxAge           time.Duration // of a gRPC connection
	MaxAgeGrace      time.Duration
	LogLevel         slog.Level
	LogJSON          bool
	Runtime          config.Runtime
	MergeDomains     bool
	ForceStart       bool
	HealthByStore    bool         // not ready while Redis does not answer
	HealthByDomain   bool         // not ready while the configuration has no domain
	XDS              *xds.Options // nil: the configuration is in files
	Limiter          envoy.Options
	Redis            Redis
	KeyPrefix        string
	PerSecond        *Redis // nil: limits by second are in Redis, as all others
	ExtraTags        map[string]string
	MillisecondTimes bool // response times in Prometheus are in milliseconds

	Warnings []string // one for each variable that is set and not honoured

	lookup func(string) (string, bool)
}

// IsSet reports whether the environment has a variable.
func (s *Settings) IsSet(name string) bool {
	_, found := s.lookup(name)
	return found
}

// Read reads the variables that lookup finds. The error joins all faults.
func Read(lookup func(string) (string, bool)) (*Settings, error) {
	v := &variables{lookup: lookup}
	s := &Settings{
		lookup:           lookup,
		HTTP:             v.address("HOST", "0.0.0.0", "PORT", 8080),
		GRPC:             v.address("GRPC_HOST", "0.0.0.0", "GRPC_PORT", 8081),
		Debug:            v.address("DEBUG_HOST", "0.0.0.0", "DEBUG_PORT", 6070),
		MetricsPath:      v.text("PROMETHEUS_PATH", "/metrics"),
		MaxAge:           v.duration("GRPC_MAX_CONNECTION_AGE", 24*time.Hour),
		MaxAgeGrace:      v.duration("GRPC_MAX_CONNECTION_AGE_GRACE", time.Hour),
		LogLevel:         v.level("LOG_LEVEL", slog.LevelWarn),
		LogJSON:          v.oneOf("LOG_FORMAT", "text", "text", "json") == "json",
		MergeDomains:     v.flag("MERGE_DOMAIN_CONFIG", false),
		ForceStart:       v.flag("FORCE_START_WITHOUT_INITIAL_CONFIG", false),
		HealthByStore:    v.flag("REDIS_HEALTH_CHECK_ACTIVE_CONNECTION", false),
		HealthByDomain:   v.flag("HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED", false),
		ExtraTags:        v.pairs("EXTRA_TAGS", ":"),
		MillisecondTimes: v.flag("PROMETHEUS_RESPONSE_TIME_AS_MILLISECONDS", false),
		Limiter:          v.limiter(),
		Redis:            v.redis("REDIS_"),
		KeyPrefix:        v.text("CACHE_KEY_PREFIX", ""),
		Runtime: config.Runtime{
			Root:         v.text("RUNTIME_ROOT", "/srv/runtime_data/current"),
			Subdirectory: v.text("RUNTIME_SUBDIRECTORY", ""),
			AppDirectory: v.text("RUNTIME_APPDIRECTORY", "config"),
			WatchRoot:    v.flag("RUNTIME_WATCH_ROOT", true),
		},
	}
	if socket := v.text("GRPC_UDS", ""); socket != "" {
		s.GRPC = "unix:" + socket
	}
	if v.flag("USE_PROMETHEUS", false) {
		s.Metrics = v.listenAddress("PROMETHEUS_ADDR", ":9090")
	}
	if v.flag("GRPC_SERVER_USE_TLS", false) {
		s.TLS = v.tls()
	}
	if v.flag("REDIS_PERSECOND", false) {
		second := v.redis("REDIS_PERSECOND_")
		s.PerSecond = &second
	}
	if v.oneOf("CONFIG_TYPE", "FILE", "FILE", "GRPC_XDS_SOTW") == "GRPC_XDS_SOTW" {
		s.XDS = v.xds()
	}
	if v.oneOf("BACKEND_TYPE", "redis", "redis", "memcache") == "memcache" {
		v.failf("BACKEND_TYPE is \"memcache\", which is not supported; want redis")
	}
	s.Warnings = v.unsupported()
	return s, errors.Join(v.errs...)
}

func (v *variables) limiter() envoy.Options {
	o := envoy.Options{
		NearLimitRatio:    float32(v.ratio("NEAR_LIMIT_RATIO", 0.8)),
		LocalCacheBytes:   v.number("LOCAL_CACHE_SIZE_IN_BYTES", 0),
		ShadowMode:        v.flag("SHADOW_MODE", false),
		QuotaMode:         v.flag("QUOTA_MODE", false),
		StopWhenOverLimit: v.flag("STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", false),
		DynamicMetadata:   v.flag("RESPONSE_DYNAMIC_METADATA", false),
	}
	limit := v.text("LIMIT_LIMIT_HEADER", "RateLimit-Limit")
	remaining := v.text("LIMIT_REMAINING_HEADER", "RateLimit-Remaining")
	reset := v.text("LIMIT_RESET_HEADER", "RateLimit-Reset")
	if v.flag("LIMIT_RESPONSE_HEADERS_ENABLED", false) {
		o.LimitHeader, o.RemainingHeader, o.ResetHeader = limit, remaining, reset
	}
	return o
}

func (v *variables) tls() certs.Files {
	t := certs.Files{
		Cert:      v.text("GRPC_SERVER_TLS_CERT", ""),
		Key:       v.text("GRPC_SERVER_TLS_KEY", ""),
		ClientCA:  v.text("GRPC_CLIENT_TLS_CACERT", ""),
		ClientSAN: v.text("GRPC_CLIENT_TLS_SAN", ""),
	}
	if t.Cert == "" || t.Key == "" {
		v.failf("GRPC_SERVER_USE_TLS is true without GRPC_SERVER_TLS_CERT and " +
			"GRPC_SERVER_TLS_KEY; want the paths of both files")
	}
	if t.ClientSAN != "" && t.ClientCA == "" {
		v.failf("GRPC_CLIENT_TLS_SAN is set without GRPC_CLIENT_TLS_CACERT; " +
			"want the certificates that sign those of clients")
	}
	return t
}

// address joins a host and a port.
func (v *variables) address(hostName, host, portName string, port int) string {
	n := v.number(portName, port)
	if n > 65535 {
		v.failf("%s is %d; want 0 to 65535", portName, n)
	}
	return net.JoinHostPort(v.text(hostName, host), strconv.Itoa(n))
}

func (v *variables) xds() *xds.Options {
	return &xds.Options{
		Server:         v.text("CONFIG_GRPC_XDS_SERVER_URL", "localhost:18000"),
		NodeID:         v.text("CONFIG_GRPC_XDS_NODE_ID", "default"),
		Metadata:       v.pairs("CONFIG_GRPC_XDS_NODE_METADATA", "="),
		Headers:        v.pairs("CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS", ":"),
		Retry:          v.duration("CONFIG_GRPC_XDS_SERVER_CONNECT_RETRY_INTERVAL", 3*time.Second),
		MaxMessage:     v.number("XDS_CLIENT_MAX_MSG_SIZE_IN_BYTES", 0),
		BackoffInitial: v.duration("XDS_CLIENT_BACKOFF_INITIAL_INTERVAL", 10*time.Second),
		BackoffMax:     v.duration("XDS_CLIENT_BACKOFF_MAX_INTERVAL", time.Minute),
		BackoffRandom:  v.ratio("XDS_CLIENT_BACKOFF_RANDOM_FACTOR", 0.5),
		Jitter:         v.flag("XDS_CLIENT_BACKOFF_JITTER", true),
		TLS:            v.flag("CONFIG_GRPC_XDS_SERVER_USE_TLS", false),
		Cert:           v.text("CONFIG_GRPC_XDS_CLIENT_TLS_CERT", ""),
		Key:            v.text("CONFIG_GRPC_XDS_CLIENT_TLS_KEY", ""),
		ServerCA:       v.text("CONFIG_GRPC_XDS_SERVER_TLS_CACERT", ""),
		ServerSAN:      v.text("CONFIG_GRPC_XDS_SERVER_TLS_SAN", ""),
	}
}
