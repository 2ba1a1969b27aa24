package overrides

import (
	"context"
	"sync"
)

// memory keeps overrides in this process, for one table.
type memory struct {
	mu     sync.Mutex
	fields map[string]string
	fresh  map[string]string // what has changed since the last news
}

func (m *memory) news(context.Context, string, Also) (news, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := news{fields: m.fresh}
	m.fresh = map[string]string{}
	return n, nil
}

func (m *memory) change(_ context.Context, c change) (outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.from != anyValue && m.fields[c.field] != c.from {
		return conflict, nil
	}
	for i := 0; i < len(c.expired); i += 2 {
		if m.fields[c.expired[i]] == c.expired[i+1] {
			m.set(c.expired[i], "")
		}
	}
	had := m.fields[c.field] != ""
	switch {
	case c.value == "" && !had:
		return unchanged, nil
	case c.value != "" && !had && m.isFull(c.max):
		return full, nil
	}
	m.set(c.field, c.value)
	return changed, nil
}

func (m *memory) set(name, value string) {
	if m.fresh[name] = value; value == "" {
		delete(m.fields, name)
	} else {
		m.fields[name] = value
	}
}

// Entries returns what is stored and in force, by its names: see [Table.Swap].
func (t *Table) Entries() map[string]string {
	t.loaded.mu.Lock()
	defer t.loaded.mu.Unlock()
	entries := map[string]string{}
	for name, f := range t.loaded.fields {
		if f.kind != "" && live(name, f.value) != "" {
			entries[name] = f.value
		}
	}
	return entries
}

// isFull reports whether there are most overrides; 0 is no maximum.
func (m *memory) isFull(most int) bool {
	if most == 0 || len(m.fields) < most {
		return false
	}
	n := 0
	for name := range m.fields {
		if isOverride(name) {
			n++
		}
	}
	return n >= most
}

// keepLost does nothing: this process loses nothing while it runs.
func (m *memory) keepLost(context.Context, Lost) error { return nil }

func (m *memory) lost(context.Context) (Lost, error) { return Lost{}, nil }
