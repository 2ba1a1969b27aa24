// Package limitmap keeps what was computed for each limit, for a bounded number of limits.
package limitmap

import (
	"iter"
	"maps"
	"sync"
	"sync/atomic"
)

// Map keeps one value for each key, which is a limit or the name of one. Reading takes no lock.
//
// It keeps the keys that come first, up to its bound: a program that makes limits anew for each
// request must not fill the memory, nor copy a full map each time.
type Map[K comparable, V any] struct {
	create func(K) V
	limit  int
	kept   atomic.Pointer[map[K]V] // never changed, but replaced

	mu sync.Mutex // held while kept is replaced
}

// New returns a Map that keeps values for at most limit keys. The function create makes a value.
func New[K comparable, V any](limit int, create func(K) V) *Map[K, V] {
	m := &Map[K, V]{create: create, limit: limit}
	m.kept.Store(&map[K]V{})
	return m
}

// Get returns the value of key. ok is false if the Map is full and does not keep key.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	kept := *m.kept.Load()
	if value, ok = kept[key]; ok || len(kept) >= m.limit {
		return value, ok
	}
	return m.add(key)
}

// Values returns the values that the Map keeps, in no order.
func (m *Map[K, V]) Values() iter.Seq[V] { return maps.Values(*m.kept.Load()) }

// Of returns the value of key. If the Map is full and does not keep key, it makes a new value.
func (m *Map[K, V]) Of(key K) V {
	if value, ok := m.Get(key); ok {
		return value
	}
	return m.create(key)
}

func (m *Map[K, V]) add(key K) (value V, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := *m.kept.Load()
	if value, ok = kept[key]; ok || len(kept) >= m.limit { // added or filled meanwhile
		return value, ok
	}
	value, more := m.create(key), maps.Clone(kept)
	more[key] = value
	m.kept.Store(&more)
	return value, true
}
