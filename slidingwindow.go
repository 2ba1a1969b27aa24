package headgate

// slidingWindow decides by the grants in the window that now is in, plus those
// of the window before weighed by how much of it a window ending now would still
// cover. used counts the grants in the window of at, previous those in the one
// before. The weighing is done in whole numbers: both sides times the window.
func slidingWindow(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	elapsed := l.perPeriod.rest(now)
	used, previous := slidingWindowCounts(l, s, now)
	weight := l.period - elapsed
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > 0 && previous*weight > (l.capacity-used-ask)*l.period:
		v.retry = skew + slidingWindowWait(l, used, previous, weight, ask)
	case charge:
		previous = max(previous+min(used+ask, 0), 0)
		used = max(used+ask, 0)
		s = state{at: now, used: used, previous: previous}
	}
	v.remaining = max(l.capacity-used-l.perPeriod.ceil(previous*weight), 0)
	switch {
	case used > 0:
		v.reset = skew + weight + l.period
	case previous > 0:
		v.reset = skew + weight
	default:
		return state{}, v
	}
	return s, v
}

// slidingWindowCounts moves the counts on to the window of now, which is not before s.at.
func slidingWindowCounts(l *rule, s state, now int64) (used, previous int64) {
	start := now - l.perPeriod.rest(now)
	switch {
	case s.at >= start:
		return s.used, s.previous
	case s.at >= start-l.period:
		return 0, s.used
	default:
		return 0, 0
	}
}

// slidingWindowWait is the time until what was refused fits: later in this
// window if the last one is in the way, else some way into the next, where the
// count of this one is in the way.
func slidingWindowWait(l *rule, used, previous, weight, ask int64) int64 {
	if room := l.capacity - used - ask; room >= 0 {
		return weight - room*l.period/previous
	}
	return weight + l.period - (l.capacity-ask)*l.period/used
}

// slidingWindowWeighed is what counts at now, which is s.at, as grants of one window.
func slidingWindowWeighed(l *rule, s state) int64 {
	return s.used + l.perPeriod.ceil(s.previous*(l.period-l.perPeriod.rest(s.at)))
}
