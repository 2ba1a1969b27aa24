package algorithm

// slidingWindow decides by the grants in the window that now is in, plus those of the
// window before weighed by how much of it a window ending now would still cover. used
// counts the grants in the window of at, previous those in the one before. The weighing is
// done in whole numbers: both sides times the period.
func (l *Rule) slidingWindow(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	elapsed := l.perPeriod.rest(now)
	used, previous := s.Used, s.Previous
	if start := now - elapsed; s.At < start-l.period {
		used, previous = 0, 0
	} else if s.At < start {
		used, previous = 0, used
	}
	weight := l.period - elapsed
	ask := l.ask(cost)
	v := Verdict{}
	switch {
	case ask > l.Capacity || ask > 0 && previous*weight > (l.Capacity-used-ask)*l.period:
		if charge == Force {
			used = l.forced(used, ask)
		}
		v.Retry = Never
		if ask <= l.Capacity {
			v.Retry = skew + l.slidingWindowWait(used, previous, weight, ask)
		}
	case charge != Nothing:
		previous = max(previous+min(used+ask, 0), 0)
		used = max(used+ask, 0)
	}
	v.Remaining = l.Capacity - used - l.perPeriod.ceil(previous*weight)
	switch {
	case used > 0:
		v.Reset = skew + weight + l.period
	case previous > 0:
		v.Reset = skew + weight
	default:
		return State{}, v
	}
	return State{At: now, Used: used, Previous: previous}, v
}

// slidingWindowWait is the time until a cost that was refused fits: later in this window if the
// last one is in the way, else some way into the next, where the count of this one is in the way.
func (l *Rule) slidingWindowWait(used, previous, weight, ask int64) int64 {
	if room := l.Capacity - used - ask; room >= 0 {
		return weight - room*l.period/previous
	}
	return weight + l.period - (l.Capacity-ask)*l.period/used
}
