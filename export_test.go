package headgate

// Rebuild makes the table of key anew, as happens when it grows.
func (m *Memory) Rebuild(key string) {
	s := m.shard(m.hash(key))
	s.Lock()
	defer s.Unlock()
	s.Rebuild()
}
