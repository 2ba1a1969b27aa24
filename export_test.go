package headgate

// Rebuild rebuilds the table of key, as happens when it grows.
func (m *Memory) Rebuild(key string) {
	s := m.shard(m.hash(key))
	s.Lock()
	defer s.Unlock()
	s.Rebuild()
}
