package metrics

import (
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// maxKeys is how many keys of a rule with label_keys have series of their own.
const maxKeys = 1000

// otherKeys is the label of all further keys. No key is this text: keys begin with their source.
const otherKeys = "other"

// decisions counts decisions by rule, and by key for the rules that ask for it.
type decisions struct {
	total     *prometheus.CounterVec
	degraded  *prometheus.CounterVec
	banned    *prometheus.CounterVec
	byKey     *prometheus.CounterVec
	unmatched prometheus.Counter
	requests  [rules.Failed + 1]prometheus.Counter // by the answer
	tokens    *tokens

	used atomic.Pointer[map[string]*ruleSeries] // by the names of the rules in use

	mu   sync.Mutex
	keys map[string]map[string]bool // of each rule, those with a series
}

// ruleSeries are the counters of a rule. A decision that ends after the rule was removed counts
// here, and does not make the series of the rule again.
type ruleSeries struct {
	outcomes  [rules.Failed + 1]prometheus.Counter
	degraded  prometheus.Counter
	banned    prometheus.Counter
	tokens    *tokenSeries   // nil: the cost is known before the response
	charged   *atomic.Uint64 // tokens that were charged; nil: a request costs 1
	labelKeys bool
}

func newDecisions(m *Metrics) *decisions {
	d := &decisions{
		total: m.counter("headgate_decisions_total",
			"Decisions of a rule, by outcome: allowed, denied, shadow_denied or error.",
			"rule", "outcome"),
		degraded: m.counter("headgate_degraded_decisions_total",
			"Decisions of a rule that were made while the store failed.", "rule"),
		banned: m.counter("headgate_ban_denials_total",
			"Denials of a rule because the key is banned.", "rule"),
		byKey: m.counter("headgate_key_decisions_total",
			"Decisions by key, for rules with label_keys. Keys above the maximum count as other.",
			"rule", "key", "outcome"),
		unmatched: m.counter("headgate_unmatched_requests_total",
			"Requests that no rule matched, and that were allowed.").WithLabelValues(),
		keys:   make(map[string]map[string]bool),
		tokens: newTokens(m),
	}
	requests := m.counter("headgate_requests_total",
		"Requests that at least one rule applies to, by the answer: allowed, denied or error.",
		"outcome")
	for _, o := range []rules.Outcome{rules.Allowed, rules.Denied, rules.Failed} {
		d.requests[o] = requests.WithLabelValues(o.String())
	}
	d.used.Store(&map[string]*ruleSeries{})
	return d
}

// Decided counts what a rule in use decided. It is for rules.Options.
func (m *Metrics) Decided(e rules.Event) {
	d := m.decisions
	r := (*d.used.Load())[e.Rule.Name]
	if r == nil {
		return
	}
	r.outcomes[e.Outcome].Inc()
	if e.Decision.Degraded() {
		r.degraded.Inc()
	}
	if e.Banned {
		r.banned.Inc()
	}
	if r.charged != nil && e.Outcome == rules.Allowed && r.tokens == nil {
		r.charged.Add(uint64(max(0, e.Cost)))
	}
	if r.labelKeys {
		d.countKey(e.Rule.Name, e.Key, e.Outcome.String())
	}
}

// Answered counts a request. It is for rules.Options.
func (m *Metrics) Answered(o rules.Outcome) { m.decisions.requests[o].Inc() }

// Requests returns how many requests were answered, and how many of them were denied.
func (m *Metrics) Requests() (all, denied uint64) {
	r := &m.decisions.requests
	denied = value(r[rules.Denied])
	return value(r[rules.Allowed]) + denied + value(r[rules.Failed]), denied
}

// Unmatched counts a request that no rule matched. It is for rules.Options.
func (m *Metrics) Unmatched() { m.decisions.unmatched.Inc() }

// countKey counts a decision of a key, unless [Metrics.Use] has removed the rule meanwhile.
func (d *decisions) countKey(rule, key, outcome string) {
	key = strings.ToValidUTF8(key, "\ufffd") // as Prometheus wants it
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[rule]
	switch {
	case keys == nil:
		return
	case keys[key]:
	case len(keys) >= maxKeys:
		key = otherKeys
	default:
		keys[key] = true
	}
	d.byKey.WithLabelValues(rule, key, outcome).Inc()
}

// Use makes the series of the rules of list, which begin with 0. It drops those of rules that are
// gone, and the series by key of rules that do not ask for them any more.
func (m *Metrics) Use(list []rules.Rule) {
	d := m.decisions
	d.mu.Lock()
	defer d.mu.Unlock()
	used := make(map[string]*ruleSeries, len(list))
	for _, r := range list {
		s := &ruleSeries{
			degraded: d.degraded.WithLabelValues(r.Name),
			banned:   d.banned.WithLabelValues(r.Name), labelKeys: r.LabelKeys,
		}
		for o := range s.outcomes {
			s.outcomes[o] = d.total.WithLabelValues(r.Name, rules.Outcome(o).String())
		}
		if r.Cost.IsLate() {
			s.tokens = d.tokens.series(r.Name)
		}
		if r.Cost.HasTokens() {
			s.charged = new(atomic.Uint64)
			if before := (*d.used.Load())[r.Name]; before != nil && before.charged != nil {
				s.charged = before.charged
			}
		}
		used[r.Name] = s
		if r.LabelKeys && d.keys[r.Name] == nil {
			d.keys[r.Name] = make(map[string]bool)
		}
	}
	for rule := range *d.used.Load() {
		if used[rule] == nil {
			d.total.DeletePartialMatch(prometheus.Labels{"rule": rule})
			d.degraded.DeleteLabelValues(rule)
			d.banned.DeleteLabelValues(rule)
		}
		if used[rule] == nil || used[rule].tokens == nil {
			d.tokens.remove(rule)
		}
	}
	for rule := range d.keys {
		if used[rule] == nil || !used[rule].labelKeys {
			delete(d.keys, rule)
			d.byKey.DeletePartialMatch(prometheus.Labels{"rule": rule})
		}
	}
	d.used.Store(&used)
	m.limits.Reset()
	for _, r := range list {
		for _, l := range r.Limits {
			m.limits.WithLabelValues(r.Name, l.Named("").String()).Set(float64(l.Capacity()))
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

// Counts are the decisions of a rule since the server started or the rule was added.
type Counts struct{ Allowed, Denied, ShadowDenied, Failed, Degraded, Banned, Tokens uint64 }

// Rules calls f with the counts of each rule in use, as Prometheus sees them.
func (m *Metrics) Rules(f func(rule string, c Counts)) {
	for rule, s := range *m.decisions.used.Load() {
		tokens := uint64(0)
		if s.charged != nil {
			tokens = s.charged.Load()
		}
		f(rule, Counts{
			Allowed: value(s.outcomes[rules.Allowed]), Denied: value(s.outcomes[rules.Denied]),
			ShadowDenied: value(s.outcomes[rules.ShadowDenied]),
			Failed:       value(s.outcomes[rules.Failed]), Degraded: value(s.degraded),
			Banned: value(s.banned), Tokens: tokens,
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
