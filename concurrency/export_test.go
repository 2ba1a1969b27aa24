package concurrency

// Keys returns the number of keys with permits, including expired ones that are not yet removed.
func (m *Memory) Keys() int {
	n := 0
	for i := range m.shards {
		s := &m.shards[i]
		s.mu.Lock()
		n += len(s.keys)
		s.mu.Unlock()
	}
	return n
}
