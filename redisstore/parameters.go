package redisstore

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// Nobody has more connections to a server than there are ports, nor waits for longer than a year.
const (
	mostConns  = 65535
	mostBuffer = 1 << 26
	longest    = 365 * 24 * time.Hour
)

// wholes are the parameters of go-redis that are whole numbers, with the least and the most that it
// takes. It panics at others, at once or when first used, or passes them over.
var wholes = map[string]struct {
	least, most int
	why         string
}{
	"pool_size":                  {0, mostConns, ", or 0 for the default"},
	"min_idle_conns":             {0, mostConns, ""},
	"max_idle_conns":             {0, mostConns, ", or 0 for no bound"},
	"max_active_conns":           {0, mostConns, ", or 0 for no bound"},
	"max_concurrent_dials":       {0, mostConns, ", or 0 for the default"},
	"pipeline_pool_size":         {-1, mostConns, ", or -1 for none"},
	"pipeline_read_buffer_size":  {0, mostBuffer, ", in bytes"},
	"pipeline_write_buffer_size": {0, mostBuffer, ", in bytes"},
	"protocol":                   {2, 3, ""},
	"max_redirects":              {-1, 100, ", or -1 for none"},
	"max_retries":                {-1, 0, ": what may have been charged is not sent again"},
	"dialer_retries":             {0, 100, ", or 0 for the default"},
	"failing_timeout_seconds":    {0, 86400, ", or 0 for the default"},
}

var durations = []string{
	"dial_timeout", "read_timeout", "write_timeout", "pool_timeout", "dialer_retry_timeout", "min_retry_backoff", "max_retry_backoff",
	"conn_max_idle_time", "idle_timeout", "conn_max_lifetime", "max_conn_age", "conn_max_lifetime_jitter", "route_by_latency_tolerance",
}

var switches = []string{
	"pool_fifo", "skip_verify", "read_only", "route_by_latency", "route_randomly", "replica_only", "use_disconnected_replicas",
	"context_timeout_enabled", "disableIdentity", "unstable_resp3",
}

// checkParameters finds fault with what go-redis would take, or refuse without a word about what is
// right. Parameters that nobody knows are left to it.
func checkParameters(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		if len(values) > 1 && name != "addr" {
			return badParameter(name, "given "+strconv.Itoa(len(values))+" times", "it once")
		}
		if want := wantOf(name, values[0]); want != "" {
			return badParameter(name, strconv.Quote(values[0]), want)
		}
	}
	return nil
}

// wantOf says what would be accepted for a parameter instead of value, and nothing if that is right.
func wantOf(name, value string) string {
	switch w, whole := wholes[name]; {
	case whole:
		if n, err := strconv.Atoi(value); err != nil || n < w.least || n > w.most {
			return strconv.Itoa(w.least) + " to " + strconv.Itoa(w.most) + w.why
		}
	case name == "queue":
		if n, err := strconv.Atoi(value); err != nil || n < 0 {
			return "the number of callers who may wait, such as " + strconv.Itoa(DefaultQueue)
		}
	case slices.Contains(durations, name):
		if !isDuration(value) {
			return "a time such as 500ms, or a number of seconds; 0 is none, and a year the most"
		}
	case slices.Contains(switches, name):
		if !slices.Contains([]string{"true", "false", "1", "0"}, value) {
			return "true or false"
		}
	}
	return ""
}

func isDuration(value string) bool {
	if n, err := strconv.Atoi(value); err == nil {
		return n >= 0 && n <= int(longest/time.Second)
	}
	d, err := time.ParseDuration(value)
	return err == nil && d >= 0 && d <= longest
}

func badParameter(name, value, want string) error {
	return &headgate.InvalidError{Field: name + " in the store URL", Value: value, Want: want}
}

// checkHosts finds fault with hosts, which would otherwise be found by dialling. A lone one may be
// left out, and so may the port of the first.
func checkHosts(hosts []string) error {
	for i, host := range hosts {
		name, port := host, ""
		if colon := strings.LastIndexByte(host, ':'); colon > strings.LastIndexByte(host, ']') {
			name, port = host[:colon], host[colon+1:]
		}
		field := "host " + strconv.Itoa(i+1) + " of the store URL"
		if len(hosts) > 1 && name == "" {
			return &headgate.InvalidError{Field: field, Value: "empty", Want: "host:port"}
		}
		if i > 0 && port == "" {
			return &headgate.InvalidError{Field: field, Value: "without a port", Want: "host:port"}
		}
		if len(port) > 5 || strings.Trim(port, "0123456789") != "" { // no port, but perhaps a password
			return strconv.ErrSyntax
		}
		if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > 65535) {
			return &headgate.InvalidError{Field: "port of the store", Value: strconv.Quote(port), Want: "1 to 65535"}
		}
	}
	return nil
}
