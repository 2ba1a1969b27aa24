package environment

import (
	"fmt"
	"slices"
)

// unsupported are the variables of envoyproxy/ratelimit that have no effect, and what to do.
var unsupported = []struct{ name, instead string }{
	{"MEMCACHE_HOST_PORT", "use Redis and REDIS_URL"},
	{"MEMCACHE_MAX_IDLE_CONNS", "use Redis and REDIS_URL"},
	{"MEMCACHE_SRV", "use Redis and REDIS_URL"},
	{"MEMCACHE_SRV_REFRESH", "use Redis and REDIS_URL"},
	{"MEMCACHE_TLS", "use Redis and REDIS_URL"},
	{"MEMCACHE_TLS_CACERT", "use Redis and REDIS_URL"},
	{"MEMCACHE_TLS_CLIENT_CERT", "use Redis and REDIS_URL"},
	{"MEMCACHE_TLS_CLIENT_KEY", "use Redis and REDIS_URL"},
	{"MEMCACHE_TLS_SKIP_HOSTNAME_VERIFICATION", "use Redis and REDIS_URL"},
	{"STATSD_HOST", "scrape Prometheus metrics (USE_PROMETHEUS=true)"},
	{"STATSD_PORT", "scrape Prometheus metrics (USE_PROMETHEUS=true)"},
	{"USE_DOG_STATSD", "scrape Prometheus metrics (USE_PROMETHEUS=true)"},
	{"USE_DOG_STATSD_MOGRIFIERS", "scrape Prometheus metrics (USE_PROMETHEUS=true)"},
	{"STATS_FLUSH_INTERVAL", "metrics are read when they are scraped"},
	{"DISABLE_STATS", "metrics are always kept, and never sent"},
	{"PROMETHEUS_MAPPER_YAML", "metrics have the names of the default mapper"},
	{"TRACING_ENABLED", "there are no traces; use metrics and the decision log"},
	{"TRACING_SERVICE_NAME", "there are no traces"},
	{"TRACING_SERVICE_NAMESPACE", "there are no traces"},
	{"TRACING_SERVICE_INSTANCE_ID", "there are no traces"},
	{"TRACING_EXPORTER_PROTOCOL", "there are no traces"},
	{"TRACING_SAMPLING_RATE", "there are no traces"},
	{"EXPIRATION_JITTER_MAX_SECONDS", "expiry has no jitter"},
	{"RUNTIME_IGNOREDOTFILES", "files that begin with a dot are always ignored"},
	{"REDIS_PIPELINE_WINDOW", "requests that arrive together share a round trip"},
	{"REDIS_PIPELINE_LIMIT", "requests that arrive together share a round trip"},
	{"REDIS_CLUSTER_PIPELINE_PARALLELISM",
		"the servers of a cluster are always called in parallel"},
	{"REDIS_POOL_ON_EMPTY_BEHAVIOR", "a caller always waits for a connection"},
	{"REDIS_STARTUP_INITIAL_INTERVAL", "the server always starts without Redis"},
	{"REDIS_STARTUP_MAX_INTERVAL", "the server always starts without Redis"},
	{"REDIS_STARTUP_MAX_ELAPSED_TIME", "the server always starts without Redis"},
	{"REDIS_PERSECOND_PIPELINE_WINDOW", "requests that arrive together share a round trip"},
	{"REDIS_PERSECOND_PIPELINE_LIMIT", "requests that arrive together share a round trip"},
	{
		"REDIS_PERSECOND_CLUSTER_PIPELINE_PARALLELISM",
		"the servers of a cluster are always called in parallel",
	},
	{"REDIS_PERSECOND_POOL_ON_EMPTY_BEHAVIOR", "a caller always waits for a connection"},
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
		value, ok := v.lookup(u.name)
		if !ok || value == "" || asksForNothing(u.name, value) {
			continue
		}
		warnings = append(warnings,
			fmt.Sprintf("%s is set and not supported: %s", u.name, u.instead))
	}
	return warnings
}

func asksForNothing(name, value string) bool {
	return slices.Contains(harmless[name], value)
}
