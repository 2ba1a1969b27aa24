package algorithm

// fixedWindow decides by the grants in the window that now is in: one of a calendar, or one that is
// aligned to the Unix epoch. used counts the grants in the window of at.
func (l *Rule) fixedWindow(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	start, end := l.window(now)
	used := s.Used
	if start > s.At {
		used = 0
	}
	ask := l.ask(cost)
	v := Verdict{}
	switch {
	case ask > 0 && ask > l.Capacity-used:
		if charge == Force {
			used = l.forced(used, ask)
		}
		v.Retry = Never
		if ask <= l.Capacity {
			v.Retry = skew + end - now
		}
	case charge != Nothing:
		used = max(used+ask, 0)
	}
	v.Remaining = l.Capacity - used
	if used == 0 {
		return State{}, v
	}
	v.Reset = skew + end - now
	return State{At: now, Used: used}, v
}

// window returns the start and the end of the window that now is in.
func (l *Rule) window(now int64) (start, end int64) {
	if l.calendar != nil {
		return l.calendar.window(now)
	}
	start = now - l.perPeriod.rest(now)
	return start, start + l.period
}
