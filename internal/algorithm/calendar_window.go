package algorithm

// calendarWindow decides by the grants in the window of the calendar that now is in. used counts
// the grants in the window of at.
func (l *Rule) calendarWindow(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	start, end := l.calendar.window(now)
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

// unknown reports whether a start time that is booked at now is after all boundaries that are sent
// to Redis. So that both stores decide alike, none is booked there.
func (l *Rule) unknown(start, now int64) bool {
	if l.calendar == nil {
		return false
	}
	_, _, last := l.Bounds(now)
	return start >= last
}
