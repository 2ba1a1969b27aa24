package overrides

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/service/internal/rules"
)

// kept is what a table has read from the store. It does not change.
type kept struct {
	*index

	fields map[string]string    // as they are in the store
	ends   map[string]time.Time // of the fields that expire
	modes  []Mode               // by the names of rules
	resets map[string]Reset     // by their names
}

// newKept reads fields. One bad entry must not hide the others: it is reported, unless it was in
// last already.
func newKept(last *kept, fields map[string]string, report func(error)) *kept {
	k := &kept{fields: fields, ends: map[string]time.Time{}, resets: map[string]Reset{}}
	var list []rules.Override
	for name, value := range fields {
		e, err := parse(name, value)
		if err == nil {
			err = k.add(&list, name, &e)
		}
		if err != nil && (last == nil || last.fields[name] != value) {
			report(err)
		}
	}
	slices.SortFunc(k.modes, func(a, b Mode) int { return cmp.Compare(a.Rule, b.Rule) })
	sortBySpecificity(list)
	k.index = newIndex(list)
	return k
}

// add adds the entry e. The name says its kind.
func (k *kept) add(list *[]rules.Override, name string, e *entry) error {
	if !e.Until.IsZero() {
		k.ends[name] = e.Until
	}
	switch {
	case strings.HasPrefix(name, resetMark):
		k.resets[name] = Reset{Rule: e.Rule, Key: e.Key}
	case !strings.Contains(name, " "):
		m, err := e.mode(name)
		if err != nil {
			return err
		}
		k.modes = append(k.modes, m)
	default:
		o, err := e.override(name)
		if err != nil {
			return err
		}
		*list = append(*list, o)
	}
	return nil
}

// expired returns the fields and values of what has expired.
func (k *kept) expired(now time.Time) (fieldsAndValues []string) {
	for name, end := range k.ends {
		if !now.Before(end) {
			fieldsAndValues = append(fieldsAndValues, name, k.fields[name])
		}
	}
	return fieldsAndValues
}

// has reports whether there is an entry of this name.
func (k *kept) has(name string) bool {
	_, found := k.fields[name]
	return found
}

// inForce returns the modes that have not expired, and when the next one does; zero: none does.
func (k *kept) inForce(now time.Time) (modes []Mode, next time.Time) {
	for _, m := range k.modes {
		if !m.Until.IsZero() {
			if !now.Before(m.Until) {
				continue
			}
			if next.IsZero() || m.Until.Before(next) {
				next = m.Until
			}
		}
		modes = append(modes, m)
	}
	return modes, next
}
