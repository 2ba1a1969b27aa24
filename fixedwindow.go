package headgate

// fixedWindow decides by the grants in the window that now is in, windows being
// aligned to the Unix epoch. used counts the grants in the window of at.
func fixedWindow(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	elapsed := l.perPeriod.rest(now)
	used := fixedWindowUsed(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > max(l.capacity-used, 0):
		v.retry = skew + l.period - elapsed
	case charge:
		used = max(used+ask, 0)
		s = state{at: now, used: used}
	}
	v.remaining = max(l.capacity-used, 0)
	if used == 0 {
		return state{}, v
	}
	v.reset = skew + l.period - elapsed
	return s, v
}

// fixedWindowUsed is the count of the window of now, which is not before s.at.
func fixedWindowUsed(l *rule, s state, now int64) int64 {
	if now-l.perPeriod.rest(now) > s.at {
		return 0
	}
	return s.used
}
