package console

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// The bounds of a state.
const (
	shownRules     = 200
	shownKeys      = 20 // of a rule
	shownInstances = 100
)

// state is what moves, for viewers.
type state struct {
	At            int64       `json:"at"`              // milliseconds since 1970
	Alone         string      `json:"alone,omitempty"` // why the other instances are not known
	Instances     []instance  `json:"instances"`       // this one first
	MoreInstances int         `json:"more_instances"`  // than are listed
	Store         storeStatus `json:"store"`
	Requests      requestRate `json:"requests"`
	Gone          []gone      `json:"gone"`  // in the time of the history, the oldest first
	Rules         []ruleState `json:"rules"` // those with most decisions in the history first
	MoreRules     int         `json:"more_rules"`
	DeniedSince   int64       `json:"denied_since"` // when denied keys began to be counted
}

// requestRate is how many requests there are for each second, each counted once.
type requestRate struct {
	Asked  float64 `json:"asked"`
	Denied float64 `json:"denied"`
}

// gone is an instance that has stopped, or that nothing is heard of any more.
type gone struct {
	Name    string `json:"name"`
	Started int64  `json:"started_at"`
	At      int64  `json:"at"`
}

// storeStatus is the state of the store as this instance sees it, and the times of all instances.
type storeStatus struct {
	Kind  string `json:"kind"` // redis or memory
	Name  string `json:"name"`
	State string `json:"state"`            // up, slow or down
	Then  string `json:"when_store_fails"` // see Options.WithoutStore
	P50   *int64 `json:"p50_us"`
	P99   *int64 `json:"p99_us"`

	KnowsInstances bool `json:"knows_instances"` // the file has their number
}

// ruleState is a rule, and what the fleet decides by it for each second.
type ruleState struct {
	rule

	Allowed      float64     `json:"allowed"`
	Denied       float64     `json:"denied"`
	ShadowDenied float64     `json:"shadow_denied"`
	Failed       float64     `json:"error"`
	Degraded     float64     `json:"degraded"`
	Banned       float64     `json:"banned"` // of Denied, those of keys that are banned
	Tokens       float64     `json:"tokens"` // charged, if the rule has a cost
	DeniedKeys   []deniedKey `json:"denied_keys"`
	MoreKeys     int         `json:"more_keys"` // than are listed; of an instance, at most 40 count
}

// merger makes a state of snapshots.
type merger struct {
	list  *ruleList
	state state
	rules map[string]*ruleState
	rates map[string]rates
	calls []uint64
}

// merge makes the state of own and the snapshots of other instances. past holds the decisions of
// each rule in the history.
func merge(l *ruleList, own *snapshot, others []*snapshot, past map[string]uint64) *state {
	m := merger{
		list: l, rules: map[string]*ruleState{}, rates: map[string]rates{},
		calls: make([]uint64, len(own.Calls)),
	}
	for _, r := range l.rules[:min(len(l.rules), shownRules)] {
		m.show(r.Name)
	}
	m.add(own)
	m.state.Instances[0].Self = true
	for i, snap := range others {
		m.add(snap)
		m.state.Instances[i+1].Differs = differs(own, snap)
	}
	for _, name := range most(past, shownRules) {
		m.showKnown(name)
	}
	s := &m.state
	s.At, s.MoreRules = own.Instance.At, len(l.byName)
	s.Requests = requestRate{tenth(s.Requests.Asked), tenth(s.Requests.Denied)}
	s.Store.P50, s.Store.P99 = percentile(m.calls, .5), percentile(m.calls, .99)
	for name, r := range m.rules {
		r.set(m.rates[name])
		s.Rules = append(s.Rules, *r)
		if _, ok := l.byName[name]; !ok {
			s.MoreRules++
		}
	}
	s.order(past, l)
	s.MoreRules -= len(s.Rules)
	return s
}

// differs returns how the rules of other differ from those of own, or nil, also if other things in
// the files differ.
func differs(own, other *snapshot) *difference {
	if own.Instance.Config.Hash == other.Instance.Config.Hash {
		return nil
	}
	if own.Lines == nil || other.Lines == nil {
		return &difference{} // which is not known
	}
	d := differenceOf(own.Lines, other.Lines)
	if len(d.Added)+len(d.Removed) == 0 {
		return nil
	}
	return &d
}

// show adds a rule that is not one of the first, if it is not there yet.
func (m *merger) show(name string) *ruleState {
	if m.rules[name] == nil {
		m.rules[name] = &ruleState{rule: m.list.find(name)}
	}
	return m.rules[name]
}

// showKnown is show for what was counted earlier: a rule that was removed meanwhile is not shown.
func (m *merger) showKnown(name string) *ruleState {
	if _, ok := m.list.byName[name]; !ok && m.rules[name] == nil && !strings.Contains(name, "/") {
		return nil
	}
	return m.show(name)
}

// add adds what an instance has counted.
func (m *merger) add(snap *snapshot) {
	seen := snap.Instance
	seen.Self, seen.Ahead = false, snap.ahead
	m.state.Requests.Asked += snap.Requests[0]
	m.state.Requests.Denied += snap.Requests[1]
	m.state.Instances = append(m.state.Instances, seen)
	for i := range min(len(m.calls), len(snap.Calls)) {
		m.calls[i] += snap.Calls[i]
	}
	for name, of := range snap.Rates {
		m.show(name)
		sum := m.rates[name]
		sum.add(of)
		m.rates[name] = sum
	}
	for name, keys := range snap.Denied {
		if r := m.showKnown(name); r != nil {
			r.DeniedKeys = append(r.DeniedKeys, keys...)
		}
	}
}

func (r *ruleState) set(of rates) {
	r.Allowed, r.Denied = tenth(of[allowed]), tenth(of[denied])
	r.ShadowDenied = tenth(of[shadowDenied])
	r.Failed, r.Degraded = tenth(of[failed]), tenth(of[degraded])
	r.Banned, r.Tokens = tenth(of[banned]), tenth(of[tokens])
}

// order sorts rules and instances, and keeps those that are shown.
func (s *state) order(past map[string]uint64, l *ruleList) {
	slices.SortFunc(s.Rules, func(a, b ruleState) int {
		return cmp.Or(cmp.Compare(past[b.Name], past[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	s.Rules = s.Rules[:min(len(s.Rules), shownRules)]
	for i := range s.Rules {
		all := mostDenied(s.Rules[i].DeniedKeys, math.MaxInt)
		keys := all[:min(len(all), shownKeys)]
		s.Rules[i].MoreKeys = len(all) - len(keys)
		for j := range keys {
			keys[j].Rate = tenth(keys[j].Rate)
			keys[j].Seen = keys[j].Seen.shown()
			keys[j].Foreign = l.isForeign(s.Rules[i].Name, keys[j].Key)
		}
		s.Rules[i].DeniedKeys = append([]deniedKey{}, keys...) // a list, and not null
	}
	slices.SortFunc(s.Instances[1:], func(a, b instance) int { return cmp.Compare(a.Name, b.Name) })
	s.MoreInstances = max(0, len(s.Instances)-shownInstances)
	s.Instances = s.Instances[:min(len(s.Instances), shownInstances)]
}
