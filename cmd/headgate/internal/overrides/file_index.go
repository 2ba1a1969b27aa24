package overrides

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
)

// index finds the first override of a list that matches. It does not change.
type index struct {
	list   []rules.Override
	exact  map[ruleKey][]int // places in list, ascending
	byRule map[string][]int  // of those with a wildcard
}

type ruleKey struct{ rule, key string }

func newIndex(list []rules.Override) *index {
	x := &index{
		list: slices.Clone(list), exact: map[ruleKey][]int{}, byRule: map[string][]int{},
	}
	for i, o := range x.list {
		if wildcard.Has(o.Key) {
			x.byRule[o.Rule] = append(x.byRule[o.Rule], i)
		} else {
			k := ruleKey{o.Rule, o.Key}
			x.exact[k] = append(x.exact[k], i)
		}
	}
	return x
}

func (x *index) find(rule, key string) (rules.Override, bool) {
	if len(x.list) == 0 {
		return rules.Override{}, false
	}
	now := time.Now()
	best := len(x.list)
	for _, i := range x.exact[ruleKey{rule, key}] {
		if !expired(&x.list[i], now) {
			best = i
			break
		}
	}
	for _, i := range x.byRule[rule] {
		if i > best {
			break
		}
		if wildcard.Match(x.list[i].Key, key) && !expired(&x.list[i], now) {
			best = i
		}
	}
	if best == len(x.list) {
		return rules.Override{}, false
	}
	return x.list[best], true
}

// valid returns the overrides that have not expired.
func (x *index) valid(now time.Time) []rules.Override {
	return slices.DeleteFunc(slices.Clone(x.list), func(o rules.Override) bool {
		return expired(&o, now)
	})
}

func expired(o *rules.Override, now time.Time) bool {
	return !o.Until.IsZero() && !now.Before(o.Until)
}

// sortBySpecificity puts exact keys first, then wildcards, the longest first.
func sortBySpecificity(list []rules.Override) {
	slices.SortFunc(list, func(a, b rules.Override) int {
		if p, q := wildcard.Has(a.Key), wildcard.Has(b.Key); p != q {
			if q {
				return -1
			}
			return 1
		}
		return cmp.Or(
			cmp.Compare(literals(b.Key), literals(a.Key)),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Key, b.Key),
		)
	})
}

func literals(pattern string) int { return len(pattern) - strings.Count(pattern, "*") }
