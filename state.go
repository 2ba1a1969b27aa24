package headgate

// state is what a store keeps for a key under a limit: the latest instant at
// which it changed, and what had been consumed by then. The zero state is a key
// at first sight; a state in which nothing is consumed any more is written as
// that. What used and previous count is said at each algorithm.
type state struct {
	at       int64 // microseconds since the Unix epoch
	used     int64
	previous int64 // sliding window only
}

// decide runs the algorithm of l: one pure function each, from the limit, the
// state, the time and the cost to the next state and the verdict. A grant is
// charged, in both, only if charge is set.
//
// A time before the state's own counts as that, so a clock that steps back
// grants nothing extra and takes nothing away; the skew between them is added to
// the waits, which are measured from the time of the request.
func (l *rule) decide(s state, now, cost int64, charge bool) (state, verdict) {
	switch l.algorithm {
	case AlgorithmTokenBucket:
		return tokenBucket(l, s, now, cost, charge)
	case AlgorithmStepped:
		return steppedTokenBucket(l, s, now, cost, charge)
	case AlgorithmFixedWindow:
		return fixedWindow(l, s, now, cost, charge)
	default:
		return slidingWindow(l, s, now, cost, charge)
	}
}

// since is s as it stands at now under l, which decide works out by itself.
func (l *rule) since(s state, now int64) state {
	now = max(now, s.at)
	switch l.algorithm {
	case AlgorithmTokenBucket:
		s = tokenBucketSince(l, s, now)
	case AlgorithmStepped:
		s.at, s.used = steppedSince(l, s, now)
	case AlgorithmFixedWindow:
		s.at, s.used = now, fixedWindowUsed(l, s, now)
	default:
		s.used, s.previous = slidingWindowCounts(l, s, now)
		s.at = now
	}
	if s.used+s.previous == 0 {
		return state{}
	}
	return s
}

// ask is the cost to decide by: a look asks for 1, and more than everything
// cannot be given back.
func (l *rule) ask(cost int64) int64 {
	if cost == 0 {
		return 1
	}
	return max(cost, -l.capacity)
}

// scale is part of a whole of size from, carried over to a whole of size to:
// part x to / from, rounded up, at most to. It is computed in doubles, because
// the product may pass 2^53 and Lua has nothing else; 2 more make up for their
// rounding, so that a change of limits never forgets what was consumed.
func scale(part, from, to int64) int64 {
	if part == 0 || from == to {
		return min(part, to)
	}
	scaled := int64(float64(float64(part)*float64(to)) / float64(from))
	return min(scaled+2, to)
}
