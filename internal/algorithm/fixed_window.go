package algorithm

// fixedWindow decides by the grants in the window that now is in; windows are aligned to
// the Unix epoch. used counts the grants in the window of at.
func (l *Rule) fixedWindow(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	elapsed := l.perPeriod.rest(now)
	used := s.Used
	if now-elapsed > s.At {
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
			v.Retry = skew + l.period - elapsed
		}
	case charge != Nothing:
		used = max(used+ask, 0)
	}
	v.Remaining = l.Capacity - used
	if used == 0 {
		return State{}, v
	}
	v.Reset = skew + l.period - elapsed
	return State{At: now, Used: used}, v
}
