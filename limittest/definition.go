package limittest

import (
	"math/big"
	"slices"

	"github.com/headgate/headgate"
)

// model is what one key has consumed of one limit, kept the naive way: in exact
// fractions, or as a list of all grants. Nothing here is shared with the stores.
// Instants are microseconds since the Unix epoch.
type model struct {
	limit  headgate.Limit
	period int64
	level  *big.Rat // buckets: tokens held at the instant at
	at     int64    // the latest change, 0 if none; of a stepped bucket, the latest step
	fresh  bool     // buckets: full since ever, and begun anew by the next take
	grants []grant  // windows and logs
}

type grant struct{ at, count int64 }

func newModel(l headgate.Limit) *model {
	return &model{limit: l, period: l.Period().Microseconds(), level: whole(l.Capacity()), fresh: true}
}

func whole(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// holds is how many tokens would be granted at the instant t, as a fraction.
func (m *model) holds(t int64) *big.Rat {
	t = m.clamp(t)
	capacity := whole(m.limit.Capacity())
	switch m.limit.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return m.refilled(t)
	case headgate.AlgorithmStepped:
		return m.stepped(t)
	case headgate.AlgorithmFixedWindow:
		return capacity.Sub(capacity, whole(m.count(t/m.period)))
	case headgate.AlgorithmSlidingWindow:
		// previous x (window - elapsed) / window + current
		previous := new(big.Rat).SetFrac64(m.period-t%m.period, m.period)
		previous.Mul(previous, whole(m.count(t/m.period-1)))
		capacity.Sub(capacity, previous)
		return capacity.Sub(capacity, whole(m.count(t/m.period)))
	default:
		for _, g := range m.grants {
			if t-g.at < m.period {
				capacity.Sub(capacity, whole(g.count))
			}
		}
		return capacity
	}
}

// clamp lets no time pass before the latest change, which of a log is its last grant.
func (m *model) clamp(t int64) int64 {
	latest := m.at
	if m.limit.Algorithm() == headgate.AlgorithmSlidingLog {
		latest = 0
		for _, g := range m.grants {
			latest = max(latest, g.at)
		}
	}
	return max(t, latest)
}

func (m *model) refilled(t int64) *big.Rat {
	capacity := whole(m.limit.Capacity())
	if m.fresh {
		return capacity
	}
	level := new(big.Rat).SetFrac64(m.limit.Refill(), m.period)
	level.Mul(level, whole(t-m.at))
	level.Add(level, m.level)
	if level.Cmp(capacity) > 0 {
		return capacity
	}
	return level
}

func (m *model) stepped(t int64) *big.Rat {
	capacity := whole(m.limit.Capacity())
	if m.fresh {
		return capacity
	}
	level := whole((t - m.at) / m.period)
	level.Mul(level, whole(m.limit.Refill()))
	level.Add(level, m.level)
	if level.Cmp(capacity) > 0 {
		return capacity
	}
	return level
}

// count is the number of grants in the aligned window with the given index.
func (m *model) count(window int64) int64 {
	var n int64
	for _, g := range m.grants {
		if g.at/m.period == window {
			n += g.count
		}
	}
	return n
}

// fits says whether cost would be granted at t.
func (m *model) fits(t, cost int64) bool { return m.holds(t).Cmp(whole(cost)) >= 0 }

// pristine says whether the key is as at first sight at t: nothing that was
// granted makes a difference then, or ever after.
func (m *model) pristine(t int64) bool {
	full := m.holds(t).Cmp(whole(m.limit.Capacity())) == 0
	if m.limit.Algorithm() == headgate.AlgorithmSlidingWindow {
		t = m.clamp(t)
		return full && m.count(t/m.period) == 0 && m.count(t/m.period-1) == 0
	}
	return full
}

// charge records that cost was granted at t, or given back if it is negative.
func (m *model) charge(t, cost int64) {
	clamped := m.clamp(t)
	if m.pristine(t) {
		m.begin()
	}
	switch m.limit.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		m.level, m.at = m.refilled(clamped), clamped
		m.spend(cost)
	case headgate.AlgorithmStepped:
		if m.fresh {
			m.at = clamped
		}
		m.level, m.at = m.stepped(clamped), m.at+(clamped-m.at)/m.period*m.period
		m.spend(cost)
	default:
		m.at = clamped
		m.log(clamped, cost)
	}
	if m.pristine(clamped) {
		m.begin()
	}
}

// begin forgets everything: the key is as at first sight.
func (m *model) begin() {
	m.fresh, m.level, m.at, m.grants = true, whole(m.limit.Capacity()), 0, nil
}

func (m *model) spend(cost int64) {
	m.fresh = false
	m.level.Sub(m.level, whole(cost))
	if capacity := whole(m.limit.Capacity()); m.level.Cmp(capacity) > 0 {
		m.level = capacity
	}
}

// log adds a grant, or takes back the latest ones that still count. What does not
// count any more is forgotten, and so does not come back with a clock that does.
func (m *model) log(t, cost int64) {
	m.grants = slices.DeleteFunc(m.grants, func(g grant) bool { return !m.counts(g, t) })
	if cost > 0 {
		m.grants = append(m.grants, grant{t, cost})
		return
	}
	for i := len(m.grants) - 1; i >= 0 && cost < 0; i-- {
		back := min(m.grants[i].count, -cost)
		m.grants[i].count -= back
		cost += back
	}
	for len(m.grants) > 0 && m.grants[len(m.grants)-1].count == 0 {
		m.grants = m.grants[:len(m.grants)-1]
	}
}

// counts says whether g still counts for anything at t.
func (m *model) counts(g grant, t int64) bool {
	switch m.limit.Algorithm() {
	case headgate.AlgorithmFixedWindow:
		return g.at/m.period == t/m.period
	case headgate.AlgorithmSlidingWindow:
		return g.at/m.period >= t/m.period-1
	default:
		return t-g.at < m.period
	}
}
