package overrides

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// loaded holds the entries that a table has read from the store.
type loaded struct {
	index

	mu     sync.Mutex
	fields map[string]field
	modes  map[string]Mode // by the names of rules
	swept  time.Time       // when sweep last looked
}

// field is an entry as it is in the store.
type field struct {
	value string
	end   time.Time // zero: none
	kind  string    // of [Table.Count]; empty: it does not count
}

// inForceAt returns the entries that have not ended by a time, except those named in others.
func (l *loaded) inForceAt(by time.Time, others map[string]string) map[string]field {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := map[string]field{}
	for name, f := range l.fields {
		if f.kind != "" && f.isLive(by) && others[name] == "" {
			found[name] = f
		}
	}
	return found
}

func (f field) isLive(at time.Time) bool { return f.end.IsZero() || at.Before(f.end) }

// countKinds counts entries by their kind.
func countKinds(fields map[string]field) map[string]int {
	n := map[string]int{"limits": 0, "ban": 0, "mode": 0}
	for _, f := range fields {
		n[f.kind]++
	}
	return n
}

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
		l.fields[name] = field{value, e.Until, e.kind()}
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
		rule, key, _ := strings.Cut(name, " ")
		l.index.set(rule, key, o)
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

// How often expired entries are looked for, and how many are deleted at a time.
const (
	sweepInterval = 10 * time.Second
	maxSwept      = 1000
)

// sweep returns the names and values of entries that ended by a time. It looks for them once in a
// while, and when there are at least most overrides.
func (l *loaded) sweep(now, by time.Time, most int) (namesAndValues []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.swept) < sweepInterval && int(l.count.Load()) < most {
		return nil
	}
	for name, f := range l.fields {
		if !f.end.IsZero() && !by.Before(f.end) {
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
