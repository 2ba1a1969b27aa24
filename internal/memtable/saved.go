package memtable

import "github.com/headgate/headgate/internal/algorithm"

// Numbers returns the state in the slot h as l counts it, or nil for the initial state.
func (s *Shard) Numbers(l *algorithm.Rule, h uint64, now int64) []int64 {
	t := s.find(h)
	if t == nil || s.expired(t, s.limits, now) {
		return nil
	}
	return s.account(t, l, h).Numbers()
}

// Restore replaces the state in the slot h, which Prepare has returned. It reports false if the
// numbers are none of l.
func (s *Shard) Restore(l *algorithm.Rule, h uint64, numbers []int64) bool {
	k, ok := l.Account(numbers)
	if ok {
		s.write(s.find(h), l, h, k)
	}
	return ok
}
