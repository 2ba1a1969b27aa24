package metrics

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
	"github.com/prometheus/client_golang/prometheus"
)

// Envoy are the metrics of Envoy's protocol, under the names of envoyproxy/ratelimit.
type Envoy struct {
	Statistics envoy.Statistics

	requests atomic.Uint64
	failed   *prometheus.CounterVec // by reason
	seconds  prometheus.Histogram
	scale    float64
}

// NewEnvoy makes the metrics, and adds them to m. With milliseconds, response times are in
// milliseconds, under the same name.
func NewEnvoy(m *Metrics, milliseconds bool) *Envoy {
	e := &Envoy{scale: 1}
	scaled := slices.Clone(buckets)
	if milliseconds {
		e.scale = 1000
		for i := range scaled {
			scaled[i] *= 1000
		}
	}
	e.seconds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:        "ratelimit_service_response_time_seconds",
		Help:        "Time of a ShouldRateLimit request in the server.",
		Buckets:     scaled,
		ConstLabels: prometheus.Labels{"grpc_method": "ShouldRateLimit"},
	})
	e.failed = m.counter("headgate_envoy_failed_calls_total",
		"Calls of Envoy that failed, so that Envoy decides: request, canceled, internal or store.",
		"reason")
	for _, reason := range CallFailures {
		e.failed.WithLabelValues(reason) // the first failure is then an increase
	}
	m.Register(e.seconds)
	m.Register(e)
	return e
}

// CallFailures are the reasons of calls that fail: the request is wrong, the caller has left, there
// was a panic, or the store failed.
var CallFailures = [...]string{"request", "canceled", "internal", "store"}

// Failed counts a call that failed.
func (e *Envoy) Failed(reason string) { e.failed.WithLabelValues(reason).Inc() }

// Served counts a request of the protocol.
func (e *Envoy) Served(took time.Duration) {
	e.requests.Add(1)
	e.seconds.Observe(took.Seconds() * e.scale)
}

// Describe implements prometheus.Collector. The metrics are those of the rules at the time.
func (e *Envoy) Describe(chan<- *prometheus.Desc) {}

// series is the name and the labels of a metric of the rules.
type series struct{ name, domain, key1, key2 string }

// Collect implements prometheus.Collector.
func (e *Envoy) Collect(ch chan<- prometheus.Metric) {
	values := make(map[series]uint64)
	e.Statistics.Visit(func(c envoy.Counter) {
		if c.Domain == "" {
			e.collectService(ch, c)
			return
		}
		if c.Value == 0 && c.Name == "over_limit_with_local_cache" {
			return // scripts that look for over_limit find it as well
		}
		// Deeper paths count for the same series, as in the mapper of envoyproxy/ratelimit.
		keys := append(strings.SplitN(c.Path, ".", 3), "", "")
		values[series{c.Name, c.Domain, keys[0], keys[1]}] += c.Value
	})
	for s, value := range values {
		desc := prometheus.NewDesc("ratelimit_service_rate_limit_"+s.name,
			"Hits of a rule in the format of envoyproxy/ratelimit.",
			[]string{"domain", "key1", "key2"}, nil)
		send(ch, desc, value, s.domain, s.key1, s.key2)
	}
	desc := prometheus.NewDesc("ratelimit_service_total_requests",
		"Requests of Envoy's protocol.", []string{"grpc_method"}, nil)
	send(ch, desc, e.requests.Load(), "ShouldRateLimit")
	desc = prometheus.NewDesc("headgate_envoy_unmatched_descriptors_total",
		"Descriptors that no limit matched, and that were allowed.", nil, nil)
	send(ch, desc, e.Statistics.Unmatched.Load())
}

// collectService sends a counter of the whole service.
func (e *Envoy) collectService(ch chan<- prometheus.Metric, c envoy.Counter) {
	if kind, ok := strings.CutPrefix(c.Name, "call.should_rate_limit."); ok {
		desc := prometheus.NewDesc("ratelimit_service_should_rate_limit_error",
			"Requests of Envoy's protocol that failed.", []string{"err_type"}, nil)
		send(ch, desc, c.Value, kind)
		return
	}
	name := "ratelimit_service_" + c.Name
	switch c.Name {
	case "localcache.hitCount":
		name = "ratelimit_localcache_hits_total"
	case "localcache.missCount":
		name = "ratelimit_localcache_misses_total"
	}
	send(ch, prometheus.NewDesc(name, "Counter of envoyproxy/ratelimit.", nil, nil), c.Value)
}

func send(ch chan<- prometheus.Metric, desc *prometheus.Desc, value uint64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
}

// WriteStats writes the counters as NAME: VALUE, one a line, under the names that
// envoyproxy/ratelimit gives them for statsd.
func (e *Envoy) WriteStats(w io.Writer) {
	e.Statistics.Visit(func(c envoy.Counter) { fmt.Fprintf(w, "%s: %d\n", c.StatName(), c.Value) })
	fmt.Fprintf(w, "ratelimit_server.ShouldRateLimit.total_requests: %d\n", e.requests.Load())
}
