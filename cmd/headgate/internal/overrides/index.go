package overrides

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
)

// index finds the override of a key: the one for exactly this key, or else the longest pattern that
// matches it. A change takes the same time however many overrides there are, except of a pattern.
type index struct {
	count    atomic.Int64
	exact    sync.Map // *rules.Override by ruleKey
	patterns sync.Map // []*rules.Override by rule, in the order in which they are searched
}

type ruleKey struct{ rule, key string }

func newIndex(list []rules.Override) *index {
	x := new(index)
	for _, o := range list {
		x.set(o.Rule, o.Key, &o)
	}
	return x
}

// set replaces the override of key under rule by o; nil: by none. Readers see the old override or
// the new one.
func (x *index) set(rule, key string, o *rules.Override) {
	var had bool
	switch id := (ruleKey{rule, key}); {
	case wildcard.Has(key):
		had = x.setPattern(rule, key, o)
	case o == nil:
		_, had = x.exact.LoadAndDelete(id)
	default:
		_, had = x.exact.Swap(id, o)
	}
	switch {
	case had && o == nil:
		x.count.Add(-1)
	case !had && o != nil:
		x.count.Add(1)
	}
}

func (x *index) setPattern(rule, key string, o *rules.Override) (had bool) {
	list := slices.Clone(x.ofRule(rule))
	i, had := slices.BinarySearchFunc(list, key, func(o *rules.Override, key string) int {
		return cmp.Or(cmp.Compare(literals(key), literals(o.Key)), cmp.Compare(o.Key, key))
	})
	if had {
		list = slices.Delete(list, i, i+1)
	}
	if o != nil {
		list = slices.Insert(list, i, o)
	}
	x.patterns.Store(rule, list)
	return had
}

// ofRule returns the patterns of a rule. The list does not change.
func (x *index) ofRule(rule string) []*rules.Override {
	list, _ := x.patterns.Load(rule)
	patterns, _ := list.([]*rules.Override) // nil: none yet
	return patterns
}

func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }

// find returns the override of key under rule.
func (x *index) find(rule, key string) (rules.Override, bool) {
	if x.count.Load() == 0 {
		return rules.Override{}, false
	}
	now := time.Now()
	if found, ok := x.exact.Load(ruleKey{rule, key}); ok {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			return *o, true
		}
	}
	for _, o := range x.ofRule(rule) {
		if wildcard.Match(o.Key, key) && !expired(o, now) {
			return *o, true
		}
	}
	return rules.Override{}, false
}

// valid returns the overrides that have not expired, in the order in which they are searched.
func (x *index) valid(now time.Time) (list []rules.Override) {
	for _, found := range x.exact.Range {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			list = append(list, *o)
		}
	}
	slices.SortFunc(list, func(a, b rules.Override) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return append(list, x.validPatterns(now)...)
}

func (x *index) validPatterns(now time.Time) (list []rules.Override) {
	for _, patterns := range x.patterns.Range {
		for _, o := range patterns.([]*rules.Override) { //nolint:forcetypeassert // all are
			if !expired(o, now) {
				list = append(list, *o)
			}
		}
	}
	slices.SortFunc(list, func(a, b rules.Override) int {
		return cmp.Or(cmp.Compare(literals(b.Key), literals(a.Key)),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Key, b.Key))
	})
	return list
}

func expired(o *rules.Override, now time.Time) bool {
	return !o.Until.IsZero() && !now.Before(o.Until)
}
