package headgate

// steppedTokenBucket decides by a bucket that gains l.refill tokens at once, at
// each whole period since it was last full. used counts the tokens missing from
// a full bucket; at is the latest step, or the moment the bucket was first taken
// from.
//
// After a change of limits more may be missing than a full bucket holds, see
// rule.mostUsed.
func steppedTokenBucket(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	at, used := steppedSince(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case ask > max(l.full-used, 0):
		v.retry = skew + l.perRefill.ceil(ask-(l.full-used))*l.period - (now - at)
	case charge:
		used = max(used+ask, 0)
		s = state{at: at, used: used}
	}
	v.remaining = max(l.full-used, 0)
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
	if steps > l.perRefill.floor(s.used) || s.used <= steps*l.refill {
		return now, 0
	}
	return s.at + steps*l.period, s.used - steps*l.refill
}

// almost makes up for what the rounding of four operations on doubles can add.
const almost = 1 - 1.0/(1<<50)

// due is how many tokens the elapsed part of a period is worth, rounded down. It is
// computed in doubles like scale.
func due(l *rule, elapsed int64) int64 {
	return int64(float64(float64(elapsed)*float64(l.refill)) / float64(l.period) * almost)
}

// worth is how long a period of l, which is no slower than old, must have run to be worth
// as many tokens as the elapsed part of one of old, rounded down.
func worth(old, l *rule, elapsed int64) int64 {
	tokens := float64(float64(elapsed)*float64(old.refill)) / float64(old.period)
	return int64(float64(float64(tokens*float64(l.period))/float64(l.refill)) * almost)
}
