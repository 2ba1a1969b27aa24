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
	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
)

// loaded holds the entries that a table has read from the store. A change of one entry takes the
// same time however many there are, except with a wildcard, and at the maximum.
type loaded struct {
	overrides atomic.Int64 // how many
	exact     sync.Map     // *rules.Override by ruleKey
	patterns  sync.Map     // []*rules.Override by rule, in the order in which they are searched

	mu     sync.Mutex
	fields map[string]field
	modes  map[string]Mode // by the names of rules
	swept  time.Time       // when sweep last looked
}

// field is an entry as it is in the store.
type field struct {
	value string
	end   time.Time // zero: none
}

func newLoaded() *loaded { return &loaded{fields: map[string]field{}, modes: map[string]Mode{}} }

// apply makes the changes n, and returns the resets among them. One bad entry must not hide the
// others: it is reported.
func (l *loaded) apply(n news, report func(error)) (resets []Reset) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.all {
		for name := range l.fields {
			if n.fields[name] == "" {
				_, _ = l.set(name, "")
			}
		}
	}
	for name, value := range n.fields {
		if value == l.fields[name].value {
			continue
		}
		r, err := l.set(name, value)
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
func (l *loaded) set(name, value string) (*Reset, error) {
	var e entry
	var err error
	if value == "" {
		delete(l.fields, name)
	} else {
		e, err = parse(name, value)
		l.fields[name] = field{value, e.Until}
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
		l.setOverride(name, o)
	default:
		delete(l.modes, name)
		if inForce {
			var m Mode
			if m, err = e.mode(name); err == nil {
				l.modes[name] = m
			}
		}
	}
	return nil, err
}

// setOverride replaces the override of this name by o; nil: by none.
func (l *loaded) setOverride(name string, o *rules.Override) {
	rule, key, _ := strings.Cut(name, " ")
	var had bool
	switch id := (ruleKey{rule, key}); {
	case wildcard.Has(key):
		had = l.setPattern(rule, key, o)
	case o == nil:
		_, had = l.exact.LoadAndDelete(id)
	default:
		_, had = l.exact.Swap(id, o)
	}
	switch {
	case had && o == nil:
		l.overrides.Add(-1)
	case !had && o != nil:
		l.overrides.Add(1)
	}
}

func (l *loaded) setPattern(rule, key string, o *rules.Override) (had bool) {
	list := slices.Clone(l.ofRule(rule))
	i, had := slices.BinarySearchFunc(list, key, func(o *rules.Override, key string) int {
		return cmp.Or(cmp.Compare(literals(key), literals(o.Key)), cmp.Compare(o.Key, key))
	})
	if had {
		list = slices.Delete(list, i, i+1)
	}
	if o != nil {
		list = slices.Insert(list, i, o)
	}
	l.patterns.Store(rule, list)
	return had
}

// ofRule returns the overrides of a rule with a wildcard. The list does not change.
func (l *loaded) ofRule(rule string) []*rules.Override {
	list, _ := l.patterns.Load(rule)
	patterns, _ := list.([]*rules.Override) // nil: none yet
	return patterns
}

// find returns the override of key under rule.
func (l *loaded) find(rule, key string) (rules.Override, bool) {
	if l.overrides.Load() == 0 {
		return rules.Override{}, false
	}
	now := time.Now()
	if found, ok := l.exact.Load(ruleKey{rule, key}); ok {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			return *o, true
		}
	}
	for _, o := range l.ofRule(rule) {
		if wildcard.Match(o.Key, key) && !expired(o, now) {
			return *o, true
		}
	}
	return rules.Override{}, false
}

// valid returns the overrides that have not expired, in the order in which they are searched.
func (l *loaded) valid(now time.Time) (list []rules.Override) {
	for _, found := range l.exact.Range {
		if o, _ := found.(*rules.Override); !expired(o, now) {
			list = append(list, *o)
		}
	}
	for _, patterns := range l.patterns.Range {
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

// sweep returns the names and values of entries that have expired. It looks for them once in a
// while, and when there are at least most overrides.
func (l *loaded) sweep(now time.Time, most int) (namesAndValues []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) < sweepInterval && int(l.overrides.Load()) < most {
		return nil
	}
	for name, f := range l.fields {
		if !f.end.IsZero() && !now.Before(f.end) {
			namesAndValues = append(namesAndValues, name, f.value)
			if len(namesAndValues) == 2*maxSwept {
				return namesAndValues
			}
		}
	}
	l.swept = now
	return namesAndValues
}

// value returns the value of an entry; empty: there is none.
func (l *loaded) value(name string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fields[name].value
}

// inForce returns the modes that have not expired, by the names of rules.
func (l *loaded) inForce(now time.Time) (modes []Mode) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(l.modes)) {
		if m := l.modes[name]; m.Until.IsZero() || now.Before(m.Until) {
			modes = append(modes, m)
		}
	}
	return modes
}

// countPatterns counts the overrides with a wildcard that have not expired.
func (l *loaded) countPatterns(now time.Time) (n int) {
	for _, patterns := range l.patterns.Range {
		for _, o := range patterns.([]*rules.Override) { //nolint:forcetypeassert // all are
			if !expired(o, now) {
				n++
			}
		}
	}
	return n
}
