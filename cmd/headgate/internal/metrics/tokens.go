package metrics

import (
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// tokens counts what requests cost whose cost is in the response.
type tokens struct{ estimated, used, unknown *prometheus.CounterVec }

// tokenSeries are the counters of a rule.
type tokenSeries struct{ estimated, used, unknown prometheus.Counter }

func newTokens(m *Metrics) *tokens {
	return &tokens{
		estimated: m.counter("headgate_rule_tokens_estimated_total",
			"Tokens that were charged before requests whose cost is in the response.", "rule"),
		used: m.counter("headgate_rule_tokens_used_total",
			"Tokens that these requests were charged in all.", "rule"),
		unknown: m.counter("headgate_rule_tokens_unknown_total",
			"Responses that did not say what these requests have used.", "rule"),
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

// Settled counts what a request cost under a rule in use. It is for rules.Options.
func (m *Metrics) Settled(s rules.Settlement) {
	r := (*m.decisions.used.Load())[s.Rule.Name]
	if r == nil || r.tokens == nil {
		return
	}
	r.tokens.estimated.Add(float64(s.Estimated))
	r.tokens.used.Add(float64(s.Used))
	if !s.Known {
		r.tokens.unknown.Inc()
	}
}
