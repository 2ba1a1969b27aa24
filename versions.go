package headgate

// A named limit whose numbers change is there in versions. While a fleet rolls out
// a change, two of them take turns on one key; and a change may be taken back. A
// store keeps the state under the version that was asked last, and beside it, as
// long as it tells something that this one does not, the state under another.
// Both are charged with every grant, and each refills by its own numbers. So a
// version that comes back finds its state as it would be had it been asked alone,
// whatever the other could not hold. The other one decides nothing meanwhile.

// version is the state of a key under another version of its limit.
type version struct {
	l *rule // nil: there is none
	state
	most int64 // used is counted up to this
}

// decideBeside is decide, with the state of another version, which is charged too. It
// is forgotten once it is as at first sight when something is charged.
func (l *rule) decideBeside(s state, other version, now, cost int64, charge bool) (state, version, verdict) {
	if other.l == nil {
		next, v := l.decide(s, now, cost, charge)
		return next, other, v
	}
	skew := max(other.at-now, 0) // time stands still for the key as a whole
	next, v := l.decide(s, now+skew, cost, charge)
	if charge && v.granted() {
		other = other.charged(now+skew, l.ask(cost))
	}
	if v.retry > 0 {
		v.retry += skew
	}
	if v.reset > 0 {
		v.reset += skew
	}
	return next, other, v
}

// charged is v after a grant or a refund of ask tokens under the current version.
func (v version) charged(now, ask int64) version {
	if v.state = v.l.since(v.state, now); v.state == (state{}) {
		return version{}
	}
	v.previous = max(v.previous+min(v.used+ask, 0), 0)
	switch {
	case ask > (v.most-v.used)/v.l.unit:
		v.used = v.most
	case -ask > v.used/v.l.unit:
		v.used = 0
	default:
		v.used += ask * v.l.unit
	}
	if v.used+v.previous == 0 {
		return version{}
	}
	return v
}

// adopt turns what is kept of a key under old, and beside it, into what is kept of it
// under l, a limit of the same name and algorithm with other numbers. Time up to now
// passes by the old numbers. The new state is the one that is remembered, or else
// what is still consumed under the old is carried over to it. It reports whether
// anything had to change, and so has to be written even if the request is refused:
// the change counts from the moment it is first seen.
func (l *rule) adopt(old *rule, s state, other version, now int64) (state, version, bool) {
	if l.continues(old, s, other) {
		return s, other, false
	}
	now = max(now, s.at, other.at)
	last := version{l: old, state: old.since(s, now), most: old.mostUsed}
	switch {
	case other.l == nil:
		last.most = last.mostBefore(l)
	case l.sameNumbers(other.l) && other.used <= l.mostUsed:
		next := l.since(other.state, now)
		if !last.neededBeside(l, old.capacity <= l.capacity) {
			last = version{}
		}
		return next, last, true
	default:
		other.state = other.l.since(other.state, now)
	}
	next, kept := l.carryOver(last, other, now)
	return next, kept, true
}

// continues says whether s is a state under l as well as under old. What capacity it
// had does not matter as long as nothing is remembered beside it.
func (l *rule) continues(old *rule, s state, other version) bool {
	switch {
	case !l.sameNumbers(old):
		return false
	case other.l != nil && l.isBucket():
		return l.capacity == old.capacity
	default:
		return s.used <= l.mostUsed
	}
}

// carryOver gives the state under l that the states of two versions make (there may be
// only the first), and which of them is to be remembered beside it.
func (l *rule) carryOver(v, w version, now int64) (state, version) {
	if w.l != nil && w.tellsMoreThan(v) {
		v, w = w, v
	}
	next := state{at: now, used: l.recounted(v)}
	if w.l != nil {
		next.used = max(next.used, l.recounted(w))
	}
	next.used = min(next.used, l.full)
	needed := v.neededBeside(l, l.recounted(v) <= next.used)
	if l.algorithm == AlgorithmStepped {
		next.at -= l.headStart(v, now, needed)
	}
	next = l.since(next, now)
	switch {
	case needed:
		return next, v
	case w.l != nil && w.neededBeside(l, true):
		return next, w
	default:
		return next, version{}
	}
}

// headStart is how long the period of a stepped bucket has run when it is carried over
// from v: as long as is worth what has passed of that one's. As long as that is
// remembered, less than a whole period: its tokens have not come yet.
func (l *rule) headStart(v version, now int64, needed bool) int64 {
	start := min(worth(v.l, l, now-v.at), now)
	if needed {
		start = min(start, l.period-1)
	}
	return start
}

// neededBeside says whether v has to be remembered beside a state under l: a faster
// bucket, because it would be short of what flows into it; another one that missed more
// than l holds, because that would be forgotten; a longer window. v that is as at first
// sight tells nothing.
func (v version) neededBeside(l *rule, fits bool) bool {
	switch {
	case v.state == (state{}):
		return false
	case l.isBucket():
		return !fits || v.l.fasterThan(l)
	default:
		return v.l.period > l.period
	}
}

// tellsMoreThan says which of two versions knows of more that was consumed: the bucket
// that misses more tokens, the longer window.
func (v version) tellsMoreThan(w version) bool {
	if v.l.isBucket() {
		return float64(v.used)/float64(v.l.unit) > float64(w.used)/float64(w.l.unit)
	}
	return v.l.period > w.l.period
}

// recounted is what is consumed in the state of v, in the units of l, rounded up. If a
// bucket of l does not hold it, it is one more than that does.
func (l *rule) recounted(v version) int64 {
	switch l.algorithm {
	case AlgorithmFixedWindow:
		return v.used
	case AlgorithmSlidingWindow:
		return slidingWindowWeighed(v.l, v.state)
	}
	tokens, fraction := v.used/v.l.unit, v.used%v.l.unit
	if tokens > l.capacity || tokens == l.capacity && fraction > 0 {
		return l.full + 1
	}
	return tokens*l.unit + scale(fraction, v.l.unit, l.unit)
}

// mostBefore is what the state of v, which l takes over from, may come to miss before
// its version comes back. It stands in for what a full bucket of that version holds,
// which the store in Redis does not know then: what misses now, and if that is less
// than l holds, what may be granted under l.
func (v version) mostBefore(l *rule) int64 {
	switch v.l.algorithm {
	case AlgorithmTokenBucket:
		if l.capacity > maxExact/2/v.l.unit {
			return maxExact / 2
		}
		return max(v.used, l.capacity*v.l.unit)
	case AlgorithmStepped:
		return min(max(v.used, l.capacity)+v.l.refill, v.l.mostStepped())
	default:
		return v.l.mostUsed
	}
}

// sameNumbers says whether states under l and m are counted alike.
func (l *rule) sameNumbers(m *rule) bool {
	if l.algorithm == AlgorithmTokenBucket {
		return l.rate == m.rate && l.unit == m.unit
	}
	return l.period == m.period && l.refill == m.refill
}

// fasterThan compares the rates of two buckets, and of equal ones the steps. It is
// computed in doubles: whether rates differ that these cannot tell apart matters little.
func (l *rule) fasterThan(m *rule) bool {
	a, b := float64(l.refill)/float64(l.period), float64(m.refill)/float64(m.period)
	return a > b || a == b && l.algorithm == AlgorithmStepped && l.refill > m.refill
}
