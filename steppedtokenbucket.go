package headgate

// steppedTokenBucket decides by a bucket that gains l.refill tokens at once, at
// each whole period since it was last full. used counts the tokens missing from
// a full bucket; at is the latest step, or the moment the bucket was first taken
// from.
func steppedTokenBucket(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	at, used := steppedSince(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > l.full-used:
		v.retry = skew + l.perRefill.ceil(ask-(l.full-used))*l.period - (now - at)
	case charge:
		used = max(used+ask, 0)
		s = state{at: at, used: used, clipped: s.clipped}
	}
	v.remaining = l.full - used
	if used == 0 {
		return state{}, v
	}
	v.reset = skew + l.perRefill.ceil(used)*l.period - (now - at)
	return s, v
}

// steppedSince lets the steps up to now happen. A bucket that is full again
// begins anew at now.
func steppedSince(l *rule, s state, now int64) (at, used int64) {
	steps := l.perPeriod.floor(now - s.at)
	if steps >= l.fill || s.used <= steps*l.refill {
		return now, 0
	}
	return s.at + steps*l.period, s.used - steps*l.refill
}

// adoptSteppedTokenBucket carries the missing tokens over, and the share of a
// period that has passed since the last step.
func adoptSteppedTokenBucket(old, l *rule, s state, now int64) (state, bool) {
	resized := s.clipped && old.capacity != l.capacity
	if old.period == l.period && old.refill == l.refill && s.used <= l.full && !resized {
		return s, false
	}
	at, used := steppedSince(old, s, now)
	if used == 0 {
		return state{}, true
	}
	if s.clipped {
		used += max(l.capacity-old.capacity, 0)
	}
	toStep := scale(old.period-(now-at), old.period, l.period)
	return state{at: max(now-(l.period-toStep), 0), used: min(used, l.full), clipped: s.clipped || used > l.full}, true
}
