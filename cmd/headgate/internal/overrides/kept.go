package overrides

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// kept holds the entries that a table has read from the store. A change of one entry takes the same
// time however many there are, except with a wildcard, and at the maximum.
type kept struct {
	overrides atomic.Int64 // how many
	exact     sync.Map     // *rules.Override by ruleKey
	patterns  sync.Map     // []*rules.Override by rule, in the order in which they are searched

	mu     sync.Mutex
	fields map[string]field
	modes  map[string]Mode // by the names of rules
	swept  time.Time       // when expired last looked
}

// field is an entry as it is in the store.
type field struct {
	value string
	end   time.Time // zero: none
}

func newKept() *kept { return &kept{fields: map[string]field{}, modes: map[string]Mode{}} }

// apply makes the changes n, and returns the resets among them. One bad entry must not hide the
// others: it is reported.
func (k *kept) apply(n news, report func(error)) (resets []Reset) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if n.all {
		for name := range k.fields {
			if n.fields[name] == "" {
				_, _ = k.set(name, "")
			}
		}
	}
	for name, value := range n.fields {
		if value == k.fields[name].value {
			continue
		}
		r, err := k.set(name, value)
		if err != nil {
			report(err)
		}
		if r != nil {
			resets = append(resets, *r)
		}
	}
	return resets
}

// set replaces an entry, or deletes it if value is empty. The name contains its kind. Readers
// see the old entry or the new one. A bad entry is kept, but has no effect.
func (k *kept) set(name, value string) (*Reset, error) {
	var e entry
	var err error
	if value == "" {
		delete(k.fields, name)
	} else {
		e, err = parse(name, value)
		k.fields[name] = field{value, e.Until}
	}
	inForce := value != "" && err == nil
	switch {
	case strings.HasPrefix(name, resetMark):
		if inForce {
			return &Reset{Rule: e.Rule, Key: e.Key}, nil
		}
	case isOverride(name):
		var o *rules.Override
		if inForce {
			o, err = e.override(name)
		}
		k.setOverride(name, o)
	default:
		delete(k.modes, name)
		if inForce {
			var m Mode
			if m, err = e.mode(name); err == nil {
				k.modes[name] = m
			}
		}
	}
	return nil, err
}

// setOverride replaces the override of this name by o; nil: by none.
func (k *kept) setOverride(name string, o *rules.Override) {
	rule, key, _ := strings.Cut(name, " ")
	var had bool
	switch id := (ruleKey{rule, key}); {
	case isPattern(key):
		had = k.setPattern(rule, key, o)
	case o == nil:
		_, had = k.exact.LoadAndDelete(id)
	default:
		_, had = k.exact.Swap(id, o)
	}
	switch {
	case had && o == nil:
		k.overrides.Add(-1)
	case !had && o != nil:
		k.overrides.Add(1)
	}
}

func (k *kept) setPattern(rule, key string, o *rules.Override) (had bool) {
	list := slices.Clone(k.ofRule(rule))
	i, had := slices.BinarySearchFunc(list, key, func(o *rules.Override, key string) int {
		return cmp.Or(cmp.Compare(literals(key), literals(o.Key)), cmp.Compare(o.Key, key))
	})
	if had {
		list = slices.Delete(list, i, i+1)
	}
	if o != nil {
		list = slices.Insert(list, i, o)
	}
	k.patterns.Store(rule, list)
	return had
}

// ofRule returns the overrides of a rule with a wildcard. The list does not change.
func (k *kept) ofRule(rule string) []*rules.Override {
	list, _ := k.patterns.Load(rule)
	patterns, _ := list.([]*rules.Override) // nil: none yet
	return patterns
}

// find returns the override of key under rule.
func (k *kept) find(rule, key string) (rules.Override, bool) {
	if k.overrides.Load() == 0 {
		return rules.Override{}, false
	}
	now := time.Now()
	if found, ok := k.exact.Load(ruleKey{rule, key}); ok {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			return *o, true
		}
	}
	for _, o := range k.ofRule(rule) {
		if matches(o.Key, key) && !expired(o, now) {
			return *o, true
		}
	}
	return rules.Override{}, false
}

// valid returns the overrides that have not expired, in the order in which they are searched.
func (k *kept) valid(now time.Time) (list []rules.Override) {
	for _, found := range k.exact.Range {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			list = append(list, *o)
		}
	}
	for _, patterns := range k.patterns.Range {
		for _, o := range patterns.([]*rules.Override) { //nolint:forcetypeassert // all are
			if !expired(o, now) {
				list = append(list, *o)
			}
		}
	}
	sortBySpecificity(list)
	return list
}

// How often expired entries are looked for, and how many are deleted at a time.
const (
	sweepInterval = 10 * time.Second
	maxSwept      = 1000
)

// expired returns the names and values of entries that have expired. It looks for them once in a
// while, and when there are at least most overrides.
func (k *kept) expired(now time.Time, most int) (namesAndValues []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now.Sub(k.swept) < sweepInterval && int(k.overrides.Load()) < most {
		return nil
	}
	for name, f := range k.fields {
		if !f.end.IsZero() && !now.Before(f.end) {
			namesAndValues = append(namesAndValues, name, f.value)
			if len(namesAndValues) == 2*maxSwept {
				return namesAndValues
			}
		}
	}
	k.swept = now
	return namesAndValues
}

// value returns the value of an entry; empty: there is none.
func (k *kept) value(name string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fields[name].value
}

// inForce returns the modes that have not expired, by the names of rules.
func (k *kept) inForce(now time.Time) (modes []Mode) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(k.modes)) {
		if m := k.modes[name]; m.Until.IsZero() || now.Before(m.Until) {
			modes = append(modes, m)
		}
	}
	return modes
}

// countPatterns counts the overrides with a wildcard that have not expired.
func (k *kept) countPatterns(now time.Time) (n int) {
	for _, patterns := range k.patterns.Range {
		for _, o := range patterns.([]*rules.Override) { //nolint:forcetypeassert // all are
			if !expired(o, now) {
				n++
			}
		}
	}
	return n
}
