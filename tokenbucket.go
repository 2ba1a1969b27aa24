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
		s = state{at: now, used: used, clipped: s.clipped}
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

// adoptTokenBucket carries the tokens and the fraction of one that are missing
// over to the units of l.
func adoptTokenBucket(old, l *rule, s state, now int64) (state, bool) {
	resized := s.clipped && old.capacity != l.capacity
	if old.unit == l.unit && old.rate == l.rate && s.used <= l.full && !resized {
		return s, false
	}
	used := tokenBucketUsed(old, s, now)
	if used == 0 {
		return state{}, true
	}
	tokens, fraction := used/old.unit, used%old.unit
	if s.clipped {
		tokens += max(l.capacity-old.capacity, 0)
	}
	if tokens >= l.capacity {
		return state{at: now, used: l.full, clipped: s.clipped || tokens > l.capacity || fraction > 0}, true
	}
	return state{at: now, used: tokens*l.unit + scale(fraction, old.unit, l.unit), clipped: s.clipped}, true
}
