package metrics

import (
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/redisstore"
	"github.com/prometheus/client_golang/prometheus"
)

// Store is what is read of the store when metrics are asked for.
type Store struct {
	Up       func() bool             // whether it decides
	Fallback func() fallback.Stats   // nil: none
	Redis    func() redisstore.Stats // nil: in memory
	Keys     func() int              // nil: not in memory

	Overrides func() map[string]int // in force, by kind
}

// RegisterStore adds the metrics of the store.
func (m *Metrics) RegisterStore(s Store) {
	gauge := func(name, help string, value func() float64) {
		m.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
	}
	counter := func(name, help string, value func() float64) {
		m.Register(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
	}
	gauge("headgate_store_up",
		"1 if the store decides, 0 while it does not answer, or a circuit is open.",
		func() float64 { return number(s.Up()) })
	for kind := range s.Overrides() {
		m.Register(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "headgate_overrides", ConstLabels: prometheus.Labels{"kind": kind},
			Help: "What was put at run time and is in force: limits of keys, bans, modes of rules.",
		}, func() float64 { return float64(s.Overrides()[kind]) }))
	}
	if s.Fallback != nil {
		gauge("headgate_breaker_state", "1 while a circuit to the store is open, 0 otherwise.",
			func() float64 { return number(s.Fallback().Degraded) })
		counter("headgate_fallback_decisions_total",
			"Decisions that the fallback made, over all protocols.",
			func() float64 { return float64(s.Fallback().Decisions) })
		counter("headgate_store_failures_total", "Calls of the store that failed.",
			func() float64 { return float64(s.Fallback().Failures) })
	}
	if s.Keys != nil {
		gauge("headgate_keys", "Keys in memory.", func() float64 { return float64(s.Keys()) })
	}
	if s.Redis != nil {
		counter("headgate_redis_batches_total", "Round trips to Redis.",
			func() float64 { return float64(s.Redis().Batches) })
		counter("headgate_redis_requests_total", "Requests to Redis, which share round trips.",
			func() float64 { return float64(s.Redis().Requests) })
		counter("headgate_redis_rejected_total", "Requests rejected because the queue was full.",
			func() float64 { return float64(s.Redis().Busy) })
		gauge("headgate_redis_waiting", "Requests in the queue.",
			func() float64 { return float64(s.Redis().Waiting) })
	}
}

func number(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
