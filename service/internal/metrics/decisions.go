package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
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
	labelled atomic.Pointer[map[string]struct{}] // rules with series by key

	mu   sync.Mutex
	keys map[string]map[string]bool // of each rule, those with a series
}

func newDecisions() *decisions {
	d := &decisions{
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
			Help: "Decisions by key, of rules with label_keys. Keys over the bound count as other.",
		}, []string{"rule", "key", "outcome"}),
		keys: make(map[string]map[string]bool),
	}
	d.labelled.Store(new(map[string]struct{}))
	return d
}

// Decided counts what a rule decided about a key.
func (m *Metrics) Decided(rule, key string, o rules.Outcome, decision headgate.Decision) {
	d, outcome := m.decisions, o.String()
	d.total.WithLabelValues(rule, outcome).Inc()
	if decision.Degraded() {
		d.degraded.WithLabelValues(rule).Inc()
	}
	if key, ok := d.label(rule, key); ok {
		d.byKey.WithLabelValues(rule, key, outcome).Inc()
	}
}

// label returns the label of key, if rule asks for one: key itself, or otherKeys if the rule has
// too many.
func (d *decisions) label(rule, key string) (string, bool) {
	if _, ok := (*d.labelled.Load())[rule]; !ok {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[rule]
	switch {
	case keys[key]:
		return key, true
	case len(keys) >= maxKeys:
		return otherKeys, true
	case keys == nil:
		keys = make(map[string]bool)
		d.keys[rule] = keys
	}
	keys[key] = true
	return key, true
}

// Use makes list the rules that may ask for series by key, and forgets those of other rules.
func (m *Metrics) Use(list []rules.Rule) {
	labelled := make(map[string]struct{})
	for _, r := range list {
		if r.LabelKeys {
			labelled[r.Name] = struct{}{}
		}
	}
	d := m.decisions
	d.labelled.Store(&labelled)
	d.mu.Lock()
	defer d.mu.Unlock()
	for rule := range d.keys {
		if _, ok := labelled[rule]; !ok {
			delete(d.keys, rule)
			d.byKey.DeletePartialMatch(prometheus.Labels{"rule": rule})
		}
	}
}
