package console

import (
	"cmp"
	"slices"
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
	Watching      int         `json:"watching"`        // viewers of the fleet
	Alone         string      `json:"alone,omitempty"` // why the other instances are not known
	Instances     []instance  `json:"instances"`       // this one first
	MoreInstances int         `json:"more_instances"`  // than are listed
	Store         storeStatus `json:"store"`
	Rules         []ruleState `json:"rules"` // those with most decisions in the history first
	MoreRules     int         `json:"more_rules"`
}

// storeStatus is the state of the store as this instance sees it, and the times of all instances.
type storeStatus struct {
	Kind  string `json:"kind"` // redis or memory
	Name  string `json:"name"`
	State string `json:"state"` // up, slow or down
	P50   *int64 `json:"p50_us"`
	P99   *int64 `json:"p99_us"`
}

// ruleState is a rule, and what the fleet decides by it for each second.
type ruleState struct {
	rule

	Allowed      float64     `json:"allowed"`
	Denied       float64     `json:"denied"`
	ShadowDenied float64     `json:"shadow_denied"`
	Failed       float64     `json:"error"`
	Degraded     float64     `json:"degraded"`
	DeniedKeys   []deniedKey `json:"denied_keys"`
}

// merge makes the state of own and the snapshots of other instances. past holds the decisions of
// each rule in the history.
func merge(l *ruleList, own *snapshot, others []*snapshot, past map[string]uint64) *state {
	s := &state{At: own.Instance.At}
	found := map[string]*ruleState{}
	for _, r := range l.list {
		found[r.Name] = &ruleState{rule: r}
	}
	sums, calls := map[string]rates{}, make([]uint64, len(own.Calls))
	for i, snap := range append([]*snapshot{own}, others...) {
		seen := snap.Instance
		seen.Self = i == 0
		s.Instances = append(s.Instances, seen)
		s.Watching += snap.Viewers
		for i := range min(len(calls), len(snap.Calls)) {
			calls[i] += snap.Calls[i]
		}
		for name, r := range snap.Rules {
			if found[name] == nil {
				found[name] = &ruleState{rule: r}
			}
		}
		for name, of := range snap.Rates {
			sum := sums[name]
			sum.add(of)
			sums[name] = sum
		}
		for name, keys := range snap.Denied {
			if r := found[name]; r != nil {
				r.DeniedKeys = append(r.DeniedKeys, keys...)
			}
		}
	}
	s.Store.P50, s.Store.P99 = percentile(calls, .5), percentile(calls, .99)
	for name, r := range found {
		r.set(sums[name])
		s.Rules = append(s.Rules, *r)
	}
	s.order(past)
	return s
}

func (r *ruleState) set(of rates) {
	r.Allowed, r.Denied, r.ShadowDenied = tenth(of[allowed]), tenth(of[denied]), tenth(of[shadowDenied])
	r.Failed, r.Degraded = tenth(of[failed]), tenth(of[degraded])
}

// order sorts rules and instances, and keeps those that are shown.
func (s *state) order(past map[string]uint64) {
	slices.SortFunc(s.Rules, func(a, b ruleState) int {
		return cmp.Or(cmp.Compare(past[b.Name], past[a.Name]), cmp.Compare(a.Name, b.Name))
	})
	s.MoreRules = max(0, len(s.Rules)-shownRules)
	s.Rules = s.Rules[:min(len(s.Rules), shownRules)]
	for i := range s.Rules {
		keys := mostDenied(s.Rules[i].DeniedKeys, shownKeys)
		for j := range keys {
			keys[j].Rate = tenth(keys[j].Rate)
		}
		s.Rules[i].DeniedKeys = append([]deniedKey{}, keys...) // a list, and not null
	}
	slices.SortFunc(s.Instances[1:], func(a, b instance) int { return cmp.Compare(a.Name, b.Name) })
	s.MoreInstances = max(0, len(s.Instances)-shownInstances)
	s.Instances = s.Instances[:min(len(s.Instances), shownInstances)]
}
