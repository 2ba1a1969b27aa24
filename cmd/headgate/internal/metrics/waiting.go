package metrics

import "github.com/prometheus/client_golang/prometheus"

// Waiting collects how many requests wait in each rule. It calls its function with a function to
// call for each rule.
type Waiting func(each func(rule string, n int64))

var waiting = prometheus.NewDesc("headgate_rule_waiting",
	"Requests that wait for their turn in a rule with max_wait.", []string{"rule"}, nil)

// Describe implements [prometheus.Collector].
func (Waiting) Describe(descs chan<- *prometheus.Desc) { descs <- waiting }

// Collect implements [prometheus.Collector].
func (w Waiting) Collect(metrics chan<- prometheus.Metric) {
	w(func(rule string, n int64) {
		metrics <- prometheus.MustNewConstMetric(
			waiting, prometheus.GaugeValue, float64(n), rule)
	})
}
