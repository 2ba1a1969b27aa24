package environment

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// unsupported are the variables of envoyproxy/ratelimit that have no effect, and what to do.
var unsupported = []struct{ instead, names string }{
	{"use Redis and REDIS_URL", "MEMCACHE_HOST_PORT MEMCACHE_MAX_IDLE_CONNS MEMCACHE_SRV " +
		"MEMCACHE_SRV_REFRESH MEMCACHE_TLS MEMCACHE_TLS_CACERT MEMCACHE_TLS_CLIENT_CERT " +
		"MEMCACHE_TLS_CLIENT_KEY MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION"},
	{"scrape Prometheus metrics (USE_PROMETHEUS=true)",
		"STATSD_HOST STATSD_PORT USE_DOG_STATSD USE_DOG_STATSD_MOGRIFIERS"},
	{"metrics are read when they are scraped", "STATS_FLUSH_INTERVAL"},
	{"metrics are always kept, and never sent", "DISABLE_STATS"},
	{"metrics have the names of the default mapper", "PROMETHEUS_MAPPER_YAML"},
	{"there are no traces; use metrics and the decision log", "TRACING_ENABLED " +
		"TRACING_SERVICE_NAME TRACING_SERVICE_NAMESPACE TRACING_SERVICE_INSTANCE_ID " +
		"TRACING_EXPORTER_PROTOCOL TRACING_SAMPLING_RATE"},
	{"expiry has no jitter", "EXPIRATION_JITTER_MAX_SECONDS"},
	{"files that begin with a dot are always ignored", "RUNTIME_IGNOREDOTFILES"},
	{"requests that arrive together share a round trip", "REDIS_PIPELINE_WINDOW " +
		"REDIS_PIPELINE_LIMIT REDIS_PERSECOND_PIPELINE_WINDOW REDIS_PERSECOND_PIPELINE_LIMIT"},
	{"the servers of a cluster are always called in parallel",
		"REDIS_CLUSTER_PIPELINE_PARALLELISM REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM"},
	{"a caller always waits for a connection",
		"REDIS_POOL_ON_EMPTY_BEHAVIOR REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR"},
	{"the server always starts without Redis", "REDIS_STARTUP_INITIAL_INTERVAL " +
		"REDIS_STARTUP_MAX_INTERVAL REDIS_STARTUP_MAX_ELAPSED_TIME"},
}

// harmless are values that ask for what happens anyway.
var harmless = map[string][]string{
	"USE_STATSD":             {"false"},
	"DISABLE_STATS":          {"false"},
	"USE_DOG_STATSD":         {"false"},
	"TRACING_ENABLED":        {"false"},
	"MEMCACHE_TLS":           {"false"},
	"RUNTIME_IGNOREDOTFILES": {"true"},
	"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION": {"false"},
	"REDIS_POOL_ON_EMPTY_BEHAVIOR":            {"WAIT"},
}

// distinctive has prefixes of variables that other programs are unlikely to use. Variables such as
// PORT, LOG_LEVEL and REDIS_URL may be set for another program.
var distinctive = []string{
	"CONFIG_GRPC_XDS_", "EXPIRATION_JITTER_", "FORCE_START_", "GRPC_MAX_CONNECTION_",
	"GRPC_SERVER_",
	"HEALTHY_WITH_", "LIMIT_", "LOCAL_CACHE_SIZE_", "MEMCACHE_", "MERGE_DOMAIN_", "NEAR_LIMIT_",
	"QUOTA_MODE", "REDIS_PERSECOND", "REDIS_PIPELINE_", "RESPONSE_DYNAMIC_", "RUNTIME_",
	"SHADOW_MODE", "STOP_CACHE_KEY_", "USE_PROMETHEUS", "USE_STATSD", "XDS_CLIENT_",
}

// Ignored returns the sorted names of the variables that are set and that [Read] would read. If
// none of them is distinctive, it returns nil.
func Ignored(lookup func(string) (string, bool)) []string {
	found := make(map[string]bool)
	own := false
	_, _ = Read(func(name string) (string, bool) {
		value, ok := lookup(name)
		if ok && value != "" {
			found[name] = true
			own = own || slices.ContainsFunc(distinctive, func(begin string) bool {
				return strings.HasPrefix(name, begin)
			})
		}
		return value, ok
	})
	if !own {
		return nil
	}
	return slices.Sorted(maps.Keys(found))
}

// unsupported returns a warning for each variable that is set and has no effect.
func (v *variables) unsupported() (warnings []string) {
	statsd := v.flag("USE_STATSD", true)
	if _, ok := v.lookup("USE_STATSD"); !ok && statsd {
		warnings = append(warnings, "USE_STATSD is true by default and not supported: "+
			"scrape Prometheus metrics (USE_PROMETHEUS=true); "+
			"USE_STATSD=false removes this warning")
	} else if statsd {
		warnings = append(warnings, "USE_STATSD is set and not supported: "+
			"scrape Prometheus metrics (USE_PROMETHEUS=true)")
	}
	for _, u := range unsupported {
		for name := range strings.FieldsSeq(u.names) {
			value, ok := v.lookup(name)
			if ok && value != "" && !slices.Contains(harmless[name], value) {
				warnings = append(warnings,
					fmt.Sprintf("%s is set and not supported: %s", name, u.instead))
			}
		}
	}
	return warnings
}
