package headgate

// state is what a store keeps for a key under a limit: the latest instant at
// which it changed, and what had been consumed by then. The zero state is a key
// at first sight; a state in which nothing is consumed any more is written as
// that. What used and previous count is said at each algorithm.
type state struct {
	at       int64 // microseconds since the Unix epoch
	used     int64
	previous int64 // sliding window only

	// owed is for buckets: what was consumed beyond the capacity before it was lowered.
	// It is in the way of nothing, unless the capacity is raised again; what flows in
	// while the bucket is full makes up for it.
	owed int64
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

// adopt turns a state counted under old into one for l, a limit of the same
// name and algorithm with other numbers: time up to now passes by the old
// numbers, and what is still consumed then is carried over. It reports whether
// the state had to change, and so has to be written even if the request is
// refused: the change counts from the moment it is first seen.
func (l *rule) adopt(old *rule, s state, now int64) (state, bool) {
	now = max(now, s.at)
	switch l.algorithm {
	case AlgorithmTokenBucket:
		return adoptTokenBucket(old, l, s, now)
	case AlgorithmStepped:
		return adoptSteppedTokenBucket(old, l, s, now)
	case AlgorithmFixedWindow:
		return adoptFixedWindow(old, l, s, now)
	default:
		return adoptSlidingWindow(old, l, s, now)
	}
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

// mostOwed bounds what is owed, so that with what is used it stays exact.
const mostOwed = maxExact / 2

// refilled is what remains of used and owed when amount flows in.
func refilled(used, owed, amount int64) (int64, int64) { return spent(used, owed, -amount) }

// spent adds cost to used; if it is negative, what used cannot give is taken from owed.
func spent(used, owed, cost int64) (int64, int64) {
	used += cost
	if used < 0 {
		owed = max(owed+used, 0)
		used = 0
	}
	return used, owed
}

// resized fits used and owed, in units of which a token has unit, to the capacity of l:
// what it was raised by takes up what is owed, what it cannot hold is owed.
func resized(old, l *rule, used, owed, unit int64) (int64, int64) {
	all := used + owed
	used += min(owed, max(l.capacity-old.capacity, 0)*unit)
	used = min(used, l.full)
	return used, min(all-used, mostOwed)
}
