package headgate

// steppedTokenBucket decides by a bucket that gains l.refill tokens at once, at
// each whole period since it was last full. used counts the tokens missing from
// a full bucket; at is the latest step, or the moment the bucket was first taken
// from.
func steppedTokenBucket(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	at, used, owed := steppedSince(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > l.full-used:
		v.retry = skew + l.perRefill.ceil(ask-(l.full-used))*l.period - (now - at)
	case charge:
		used, owed = spent(used, owed, ask)
		s = state{at: at, used: used, owed: owed}
	}
	v.remaining = l.full - used
	if used+owed == 0 {
		return state{}, v
	}
	v.reset = skew + l.perRefill.ceil(used+owed)*l.period - (now - at)
	return s, v
}

// steppedSince lets the steps up to now happen. A bucket that is full again, with
// nothing owed, begins anew at now.
func steppedSince(l *rule, s state, now int64) (at, used, owed int64) {
	steps := l.perPeriod.floor(now - s.at)
	if steps > l.perRefill.floor(s.used+s.owed) || s.used+s.owed <= steps*l.refill {
		return now, 0, 0
	}
	used, owed = refilled(s.used, s.owed, steps*l.refill)
	return s.at + steps*l.period, used, owed
}

// adoptSteppedTokenBucket carries over what is missing and what is owed, and what the
// part of a period that has passed since the last step is worth.
func adoptSteppedTokenBucket(old, l *rule, s state, now int64) (state, bool) {
	if old.period == l.period && old.refill == l.refill && s.used <= l.full && (s.owed == 0 || old.capacity == l.capacity) {
		return s, false
	}
	at, used, owed := steppedSince(old, s, now)
	used, owed = resized(old, l, used, owed, 1)
	owed = min(owed, max(l.mostSteps()-l.full, 0))
	if used+owed == 0 {
		return state{}, true
	}
	return state{at: max(now-worth(old, l, now-at), 0), used: used, owed: owed}, true
}

// worth is how long a period of l must have run to be worth as many tokens as the
// elapsed part of one of old, rounded down, and less than the whole. It is computed in
// doubles like scale.
func worth(old, l *rule, elapsed int64) int64 {
	tokens := float64(float64(elapsed)*float64(old.refill)) / float64(old.period)
	micros := float64(float64(tokens*float64(l.period)) / float64(l.refill))
	if micros >= float64(l.period) {
		return l.period - 1
	}
	return max(int64(micros)-2, 0)
}

// mostSteps is what flows in by steps in as long a time as can be counted.
func (l *rule) mostSteps() int64 {
	steps := maxExact / l.period
	if steps > mostOwed/l.refill {
		return mostOwed
	}
	return steps * l.refill
}
