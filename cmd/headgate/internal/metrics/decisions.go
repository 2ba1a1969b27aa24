package metrics

import (
	"strings"
	"sync"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
)

// maxKeys is how many keys of a rule with label_keys have series of their own.
const maxKeys = 1000

// otherKeys is the label of all further keys. No key is this text: keys begin with their source.
const otherKeys = "other"

// decisions counts decisions by rule, and by key for the rules that ask for it.
type decisions struct {
	total    *prometheus.CounterVec
	degraded *prometheus.CounterVec
	byKey    *prometheus.CounterVec

	mu    sync.Mutex
	keys  map[string]map[string]bool // of each rule, those with a series
	rules map[string]bool            // those in use, and whether they label keys
}

func newDecisions() *decisions {
	return &decisions{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_decisions_total",
			Help: "Decisions of a rule, by outcome: allowed, denied, shadow_denied or error.",
		}, []string{"rule", "outcome"}),
		degraded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_degraded_decisions_total",
			Help: "Decisions of a rule that were made while the store failed.",
		}, []string{"rule"}),
		byKey: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "headgate_key_decisions_total",
			Help: "Decisions by key, for rules with label_keys. Keys above the maximum count as " +
				"other.",
		}, []string{"rule", "key", "outcome"}),
		keys: make(map[string]map[string]bool),
	}
}

// Decided counts what a rule decided. It is for rules.Options.
func (m *Metrics) Decided(e rules.Event) {
	d, rule, outcome := m.decisions, e.Rule.Name, e.Outcome.String()
	d.total.WithLabelValues(rule, outcome).Inc()
	if e.Decision.Degraded() {
		d.degraded.WithLabelValues(rule).Inc()
	}
	if e.Rule.LabelKeys {
		d.byKey.WithLabelValues(rule, d.label(rule, e.Key), outcome).Inc()
	}
}

// label returns key as UTF-8, as Prometheus wants it, or otherKeys if the rule has too many.
func (d *decisions) label(rule, key string) string {
	key = strings.ToValidUTF8(key, "\ufffd")
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[rule]
	switch {
	case keys[key]:
		return key
	case len(keys) >= maxKeys:
		return otherKeys
	case keys == nil:
		keys = make(map[string]bool)
		d.keys[rule] = keys
	}
	keys[key] = true
	return key
}

// Use makes the series of the rules of list, which begin with 0. It drops those of rules that are
// gone, and the series by key of rules that do not ask for them any more.
func (m *Metrics) Use(list []rules.Rule) {
	d := m.decisions
	labelled := make(map[string]bool, len(list))
	for _, r := range list {
		labelled[r.Name] = r.LabelKeys
		d.degraded.WithLabelValues(r.Name)
		for o := rules.Allowed; o <= rules.Failed; o++ {
			d.total.WithLabelValues(r.Name, o.String())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for rule := range d.rules {
		if _, stays := labelled[rule]; !stays {
			d.total.DeletePartialMatch(prometheus.Labels{"rule": rule})
			d.degraded.DeleteLabelValues(rule)
		}
	}
	d.rules = labelled
	for rule := range d.keys {
		if !labelled[rule] {
			delete(d.keys, rule)
			d.byKey.DeletePartialMatch(prometheus.Labels{"rule": rule})
		}
	}
}

// UseModes shows which rules are in another mode than in the file.
func (m *Metrics) UseModes(list []rules.InForce) {
	m.switched.Reset()
	for _, r := range list {
		switched := 0.0
		if r.Mode != r.FileMode {
			switched = 1
		}
		m.switched.WithLabelValues(r.Name).Set(switched)
	}
}
