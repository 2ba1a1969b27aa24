package headgate

// Rebuild makes the table in which key lies anew, as happens when it grows.
func (m *Memory) Rebuild(key string) {
	s := &m.shards[m.shardOf(m.hash(key))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.limits) > 0 {
		s.rebuild(s.limits[0], 0, len(s.slots))
	}
}
