package headgate

// tokenBucket decides by a bucket that refills continuously. used counts the
// units missing from a full bucket at the instant at.
//
// It is the continuous-state leaky bucket of ITU-T I.371, annex A (which is also
// GCRA), in whole numbers: used is the content of the leaky bucket.
func tokenBucket(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	used, owed := tokenBucketUsed(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case used+ask*l.unit > l.full:
		v.retry = skew + l.perRate.ceil(used+ask*l.unit-l.full)
	case charge:
		used, owed = spent(used, owed, ask*l.unit)
		s = state{at: now, used: used, owed: owed}
	}
	v.remaining = l.perUnit.floor(l.full - used)
	if used+owed == 0 {
		return state{}, v
	}
	v.reset = skew + l.perRate.ceil(used+owed)
	return s, v
}

// tokenBucketUsed is what is missing from the bucket at now, which is not before s.at,
// and what is owed.
func tokenBucketUsed(l *rule, s state, now int64) (used, owed int64) {
	elapsed := now - s.at
	if s.owed == 0 {
		if elapsed >= l.fill {
			return 0, 0
		}
		return max(s.used-elapsed*l.rate, 0), 0
	}
	if elapsed > l.perRate.floor(s.used+s.owed) {
		return 0, 0
	}
	return refilled(s.used, s.owed, elapsed*l.rate)
}

// adoptTokenBucket carries what is missing and what is owed over to the units and the
// capacity of l.
func adoptTokenBucket(old, l *rule, s state, now int64) (state, bool) {
	if old.unit == l.unit && old.rate == l.rate && s.used <= l.full && (s.owed == 0 || old.capacity == l.capacity) {
		return s, false
	}
	used, owed := tokenBucketUsed(old, s, now)
	used, owed = resized(old, l, recounted(used, old.unit, l.unit), recounted(owed, old.unit, l.unit), l.unit)
	if used+owed == 0 {
		return state{}, true
	}
	return state{at: now, used: used, owed: owed}, true
}

// recounted is an amount in units of which a token has from, in units of which it has to.
func recounted(amount, from, to int64) int64 {
	tokens := amount / from
	if tokens >= mostOwed/to {
		return mostOwed / to * to
	}
	return tokens*to + scale(amount%from, from, to)
}
