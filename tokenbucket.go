package headgate

// tokenBucket decides by a bucket that refills continuously. used counts the
// units missing from a full bucket at the instant at.
//
// It is the continuous-state leaky bucket of ITU-T I.371, annex A (which is also
// GCRA), in whole numbers: used is the content of the leaky bucket.
func tokenBucket(l *rule, s state, now, cost int64, charge bool) (state, verdict) {
	skew := max(s.at-now, 0)
	now += skew
	used := tokenBucketUsed(l, s, now)
	ask := l.ask(cost)
	v := verdict{}
	switch {
	case ask > l.capacity:
		v.retry = never
	case used+ask*l.unit > l.full:
		v.retry = skew + l.perRate.ceil(used+ask*l.unit-l.full)
	case charge:
		used = max(used+ask*l.unit, 0)
		s = state{at: now, used: used}
	}
	v.remaining = l.perUnit.floor(l.full - used)
	if used == 0 {
		return state{}, v
	}
	v.reset = skew + l.perRate.ceil(used)
	return s, v
}

// tokenBucketUsed is what is missing from the bucket at now, which is not before s.at.
func tokenBucketUsed(l *rule, s state, now int64) int64 {
	elapsed := now - s.at
	if elapsed >= l.fill {
		return 0
	}
	return max(s.used-elapsed*l.rate, 0)
}

// tokenBucketSince lets flow in what does up to now, which is not before s.at. Unlike
// tokenBucketUsed it takes a state that misses more than l holds.
func tokenBucketSince(l *rule, s state, now int64) state {
	elapsed := now - s.at
	if elapsed > l.perRate.floor(s.used) {
		return state{}
	}
	return state{at: now, used: s.used - elapsed*l.rate}
}
