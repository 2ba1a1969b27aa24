package metrics

import (
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// tokens has the metrics of rules whose cost is known only from the response.
type tokens struct{ estimated, used, unknown *prometheus.CounterVec }

// tokenSeries are the counters of one rule.
type tokenSeries struct{ estimated, used, unknown prometheus.Counter }

func newTokens(m *Metrics) *tokens {
	return &tokens{
		estimated: m.counter("headgate_rule_tokens_estimated_total",
			"Tokens charged before requests whose cost is known only from the response.", "rule"),
		used: m.counter("headgate_rule_tokens_used_total",
			"Tokens charged for these requests after their responses.", "rule"),
		unknown: m.counter("headgate_rule_tokens_unknown_total",
			"Responses of these requests without a cost.", "rule"),
	}
}

func (t *tokens) series(rule string) *tokenSeries {
	return &tokenSeries{t.estimated.WithLabelValues(rule), t.used.WithLabelValues(rule),
		t.unknown.WithLabelValues(rule)}
}

func (t *tokens) remove(rule string) {
	for _, c := range []*prometheus.CounterVec{t.estimated, t.used, t.unknown} {
		c.DeleteLabelValues(rule)
	}
}

// Settled counts the estimated and the final cost of a request. It is for rules.Options.
func (m *Metrics) Settled(s rules.Settlement) {
	r := (*m.decisions.used.Load())[s.Rule.Name]
	if r == nil || r.tokens == nil {
		return
	}
	r.tokens.estimated.Add(float64(s.Estimated))
	r.tokens.used.Add(float64(s.Used))
	r.charged.Add(uint64(max(0, s.Used)))
	if !s.Known {
		r.tokens.unknown.Inc()
	}
}
