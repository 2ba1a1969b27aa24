// Package metrics counts what the server does, for Prometheus.
//
// No label holds what a client sent, unless a rule asks for it, and then only up to a bound.
package metrics

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/observe"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// Metrics counts what a server does, and is scraped by Prometheus.
type Metrics struct {
	registry  *prometheus.Registry
	register  prometheus.Registerer // with the labels of all metrics
	decisions *decisions
	calls     *prometheus.HistogramVec
	loads     *prometheus.CounterVec
	loaded    prometheus.Gauge
	loadedAt  prometheus.Gauge
	config    *prometheus.GaugeVec
	switched  *prometheus.GaugeVec // by rule
	limits    *prometheus.GaugeVec // by rule and limit
	panics    *prometheus.CounterVec
	lost      *prometheus.CounterVec // by kind
}

// The buckets of decisions: a decision in memory takes a microsecond, one in Redis up to 1 ms.
var buckets = []float64{
	.00001, .00005, .0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1,
}

// New makes metrics. The version is that of the program; all metrics have the labels extra.
func New(version string, extra map[string]string) *Metrics {
	registry := prometheus.NewRegistry()
	m := &Metrics{
		registry: registry, register: prometheus.WrapRegistererWith(usable(extra), registry),
	}
	m.decisions = newDecisions(m)
	m.calls = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "headgate_decision_seconds", Help: "Time that the store took for a decision.",
		Buckets: buckets,
	}, []string{"result"})
	m.register.MustRegister(m.calls, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.loads = m.counter("headgate_config_loads_total",
		"Loads of the configuration, by result: success or error.", "result")
	m.loaded = m.gauge("headgate_config_last_load_success",
		"1 if the last load of the configuration succeeded, 0 if not.").WithLabelValues()
	m.loadedAt = m.gauge("headgate_config_last_load_timestamp_seconds",
		"Time of the last load that succeeded.").WithLabelValues()
	m.config = m.gauge("headgate_config_info", "1 for the hash of the configuration in force.",
		"hash")
	m.switched = m.gauge("headgate_rule_mode_switched",
		"1 if the rule is in another mode than in the file, by a switch in the console.", "rule")
	m.limits = m.gauge("headgate_limit",
		"What a limit of a rule holds at most, by its text, without overrides.", "rule", "limit")
	m.panics = m.counter("headgate_panics_total",
		"Panics that the server recovered from, by the part that failed.", "part")
	m.lost = m.counter("headgate_overrides_lost_total",
		"Overrides and modes in force that the store lost, by kind as headgate_overrides.", "kind")
	m.Lost(map[string]int{"limits": 0, "ban": 0, "mode": 0})
	m.gauge("headgate_build_info", "1 for the version of the program.", "version").
		WithLabelValues(version).Set(1)
	m.loads.WithLabelValues("success")
	m.loads.WithLabelValues("error")
	// The first panic is then an increase.
	for _, part := range []string{"http", "grpc", "proxy"} {
		m.panics.WithLabelValues(part)
	}
	return m
}

// counter adds a counter for each value of the labels.
func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.register.MustRegister(c)
	return c
}

// gauge adds a gauge for each value of the labels.
func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.register.MustRegister(g)
	return g
}

// Register adds a collector. Its names must be new.
func (m *Metrics) Register(c prometheus.Collector) { m.register.MustRegister(c) }

// reserved are the labels of the metrics themselves.
var reserved = []string{
	"rule", "limit", "outcome", "key", "result", "hash", "version", "le", "domain", "key1", "key2",
	"err_type",
	"grpc_method", "quantile", "part", "kind",
}

// usable returns extra without labels that metrics have already. What cannot be in a name becomes
// an underscore.
func usable(extra map[string]string) prometheus.Labels {
	labels := make(prometheus.Labels)
	for name, value := range extra {
		name = invalid.ReplaceAllString(name, "_")
		if name != "" && name[0] >= '0' && name[0] <= '9' {
			name = "_" + name
		}
		if !slices.Contains(reserved, name) && !strings.HasPrefix(name, "__") {
			labels[name] = strings.ToValidUTF8(value, "_")
		}
	}
	return labels
}

var invalid = regexp.MustCompile("[^a-zA-Z0-9_]")

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Called measures a call of the store. It is for observe.Observer.
func (m *Metrics) Called(_ context.Context, c observe.Call) {
	result := "ok"
	if c.Err != nil {
		result = "error"
	}
	m.calls.WithLabelValues(result).Observe(c.Took.Seconds())
}

// Loaded counts a load of the configuration.
func (m *Metrics) Loaded(hash string, at time.Time, err error) {
	if err != nil {
		m.loads.WithLabelValues("error").Inc()
		m.loaded.Set(0)
		return
	}
	m.loads.WithLabelValues("success").Inc()
	m.loaded.Set(1)
	m.loadedAt.Set(float64(at.Unix()))
	m.config.Reset()
	m.config.WithLabelValues(hash).Set(1)
}

// Lost counts overrides that the store has lost, by their kind.
func (m *Metrics) Lost(n map[string]int) {
	for kind, n := range n {
		m.lost.WithLabelValues(kind).Add(float64(n))
	}
}

// Panicked counts a panic in a part of the server: a listener or a task.
func (m *Metrics) Panicked(part string) { m.panics.WithLabelValues(part).Inc() }

// CallBounds are the upper bounds of the buckets of Calls, in seconds. One more bucket has no
// bound.
func CallBounds() []float64 { return buckets }

// Calls adds the number of store calls in each latency bucket to counts.
func (m *Metrics) Calls(counts []uint64) {
	collected := make(chan prometheus.Metric, 2) // one for each result
	m.calls.Collect(collected)
	close(collected)
	for c := range collected {
		var read dto.Metric
		if err := c.Write(&read); err != nil {
			continue // cannot happen: it is a histogram
		}
		below := uint64(0)
		for i, b := range read.GetHistogram().GetBucket() {
			counts[i] += b.GetCumulativeCount() - below
			below = b.GetCumulativeCount()
		}
		counts[len(buckets)] += read.GetHistogram().GetSampleCount() - below
	}
}
