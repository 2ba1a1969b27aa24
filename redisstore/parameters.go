package redisstore

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxConns    = 65535
	maxBuffer   = 1 << 26
	maxDuration = 365 * 24 * time.Hour
)

// integers are the parameters of go-redis that are whole numbers, with their ranges. Outside of
// them, go-redis panics, at once or when first used, or ignores them.
var integers = map[string]struct {
	min, max int
	why      string
}{
	"pool_size":                  {0, maxConns, ", or 0 for the default"},
	"min_idle_conns":             {0, maxConns, ""},
	"max_idle_conns":             {0, maxConns, ", or 0 for no limit"},
	"max_active_conns":           {0, maxConns, ", or 0 for no limit"},
	"max_concurrent_dials":       {0, maxConns, ", or 0 for the default"},
	"pipeline_pool_size":         {-1, maxConns, ", or -1 for none"},
	"pipeline_read_buffer_size":  {0, maxBuffer, ", in bytes"},
	"pipeline_write_buffer_size": {0, maxBuffer, ", in bytes"},
	"protocol":                   {2, 3, ""},
	"max_redirects":              {-1, 100, ", or -1 for none"},
	"max_retries":                {-1, 0, ": a request that may have been charged is not repeated"},
	"dialer_retries":             {0, 100, ", or 0 for the default"},
	"failing_timeout_seconds":    {0, 86400, ", or 0 for the default"},
}

var durations = []string{
	"dial_timeout", "read_timeout", "write_timeout", "pool_timeout", "dialer_retry_timeout",
	"min_retry_backoff", "max_retry_backoff", "conn_max_idle_time", "idle_timeout",
	"conn_max_lifetime", "max_conn_age", "conn_max_lifetime_jitter", "route_by_latency_tolerance",
}

var booleans = []string{
	"pool_fifo", "skip_verify", "read_only", "route_by_latency", "route_randomly", "replica_only",
	"use_disconnected_replicas", "context_timeout_enabled", "disableIdentity", "unstable_resp3",
}

// checkParameters rejects values that go-redis would take, or reject without saying what it wants.
// Unknown parameters are left to go-redis.
func checkParameters(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		if len(values) > 1 && name != "addr" {
			return badParameter(name, "given "+strconv.Itoa(len(values))+" times", "one value")
		}
		if want := wantOf(name, values[0]); want != "" {
			return badParameter(name, strconv.Quote(values[0]), want)
		}
	}
	return nil
}

// wantOf says what is accepted for a parameter, or nothing if value is valid.
func wantOf(name, value string) string {
	switch limits, ok := integers[name]; {
	case ok:
		if n, err := strconv.Atoi(value); err != nil || n < limits.min || n > limits.max {
			return strconv.Itoa(limits.min) + " to " + strconv.Itoa(limits.max) + limits.why
		}
	case name == "queue":
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return "how many callers may wait, such as " + strconv.Itoa(DefaultQueue)
		}
	case slices.Contains(durations, name):
		if !isDuration(value) {
			return "a duration such as 500ms, or a number of seconds, at most a year; 0 for none"
		}
	case slices.Contains(booleans, name):
		if !slices.Contains([]string{"true", "false", "1", "0"}, value) {
			return "true or false"
		}
	}
	return ""
}

func isDuration(value string) bool {
	if n, err := strconv.Atoi(value); err == nil {
		return n >= 0 && n <= int(maxDuration/time.Second)
	}
	d, err := time.ParseDuration(value)
	return err == nil && d >= 0 && d <= maxDuration
}

func badParameter(name, value, want string) error {
	return invalid(name+" in the store URL", value, want)
}

// checkHosts rejects hosts that could not be dialled. A single host may be empty, and the first may
// have no port.
func checkHosts(hosts []string) error {
	for i, host := range hosts {
		name, port := host, ""
		if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
			name, port = host[:colon], host[colon+1:]
		}
		field := "host " + strconv.Itoa(i+1) + " of the store URL"
		if len(hosts) > 1 && name == "" {
			return invalid(field, "empty", "host:port")
		}
		if i > 0 && port == "" {
			return invalid(field, "without a port", "host:port")
		}
		if len(port) > 5 || strings.Trim(port, "0123456789") != "" { // it may be part of a password
			return strconv.ErrSyntax
		}
		if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
			return invalid("port of the store", strconv.Quote(port), "1 to 65535")
		}
	}
	return nil
}
