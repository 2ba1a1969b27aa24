package overrides

import (
	"context"
	"maps"
	"strconv"
	"sync"
)

// memory keeps overrides in this process.
type memory struct {
	mu      sync.Mutex
	fields  map[string]string
	version int
}

func (m *memory) load(_ context.Context, version string) (map[string]string, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := strconv.Itoa(m.version)
	if version == now {
		return nil, now, nil
	}
	return maps.Clone(m.fields), now, nil
}

func (m *memory) change(_ context.Context, c change) (outcome, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.from != anyValue && m.fields[c.field] != c.from {
		return conflict, nil
	}
	for i := 0; i < len(c.expired); i += 2 {
		if m.fields[c.expired[i]] == c.expired[i+1] {
			delete(m.fields, c.expired[i])
		}
	}
	_, had := m.fields[c.field]
	switch {
	case c.value == "" && !had:
		return unchanged, nil
	case c.value == "":
		delete(m.fields, c.field)
	case !had && len(m.fields) >= c.max:
		return full, nil
	default:
		m.fields[c.field] = c.value
	}
	m.version++
	return changed, nil
}
