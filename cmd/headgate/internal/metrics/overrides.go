package metrics

import (
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/prometheus/client_golang/prometheus"
)

// Overrides collects how many overrides and modes are in force.
type Overrides func() overrides.Counts

var inForce = prometheus.NewDesc("headgate_overrides",
	"What was put at run time and is in force: limits of keys, bans, modes of rules.",
	[]string{"kind"}, nil)

// Describe implements [prometheus.Collector].
func (Overrides) Describe(descs chan<- *prometheus.Desc) { descs <- inForce }

// Collect implements [prometheus.Collector].
func (o Overrides) Collect(metrics chan<- prometheus.Metric) {
	n := o()
	for kind, count := range map[string]int{"limits": n.Limits, "ban": n.Bans, "mode": n.Modes} {
		metrics <- prometheus.MustNewConstMetric(
			inForce, prometheus.GaugeValue, float64(count), kind)
	}
}
