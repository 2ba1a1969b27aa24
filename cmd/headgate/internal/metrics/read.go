package metrics

import (
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Counts are the decisions of a rule since the server started or the rule was added.
type Counts struct{ Allowed, Denied, ShadowDenied, Failed, Degraded uint64 }

// Rules calls f with the counts of each rule in use, as Prometheus sees them.
func (m *Metrics) Rules(f func(rule string, c Counts)) {
	for rule, s := range *m.decisions.used.Load() {
		f(rule, Counts{
			Allowed: value(s.outcomes[rules.Allowed]), Denied: value(s.outcomes[rules.Denied]),
			ShadowDenied: value(s.outcomes[rules.ShadowDenied]),
			Failed:       value(s.outcomes[rules.Failed]), Degraded: value(s.degraded),
		})
	}
}

func value(c prometheus.Counter) uint64 {
	var read dto.Metric
	if err := c.Write(&read); err != nil {
		return 0 // cannot happen: it is a counter
	}
	return uint64(read.GetCounter().GetValue())
}

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
