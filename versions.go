package headgate

// A named limit whose numbers change is there in versions. While a fleet rolls out
// a change, two of them take turns on one key; and a change may be taken back. A
// store keeps the state under the version that was asked last, and beside it, as
// long as it tells something that this one does not, the state under another.
// Both are charged with every grant, and each refills by its own numbers. So a
// version that comes back finds its state as if all had been granted under it, whatever
// the other could not hold: unless the key was at first sight meanwhile, a third version
// was asked, or it was given up, see charged. The other one decides nothing meanwhile.

// retired is how many lifetimes of the slower of two versions the other one may go without
// being asked for tokens, before it is taken for given up.
const retired = 8

// version is the state of a key under another version of its limit.
type version struct {
	l *rule // nil: there is none
	state
	most int64 // used is counted up to this: what its limit can miss, or if that is not
	sure bool  // known, because its capacity is not, what may come to miss while it is away
	left int64 // when the other one took over
}

// decideBeside is decide, with the state of another version, which is charged too.
func (l *rule) decideBeside(s state, other version, now, cost int64, charge bool) (state, version, verdict) {
	skew := max(other.at-now, 0) // time stands still for the key as a whole
	next, v := l.decide(s, now+skew, cost, charge)
	if charge && v.granted() && other.l != nil {
		other = other.charged(l, s, now+skew, l.ask(cost))
		if next == (state{}) && other.fresh() {
			other = version{}
		}
	}
	if v.retry > 0 {
		v.retry += skew
	}
	if v.reset > 0 {
		v.reset += skew
	}
	return next, other, v
}

// charged is v after a grant or a refund of ask tokens under l, in the state s. If v was
// as at first sight before, and s as well, or if it was not asked for as long as either
// takes to become that, it is forgotten: should it come back, that is a change like any
// other. So it is, whatever it misses, if it was not asked for several times as long:
// it has been given up, and its keys are not to be burdened for ever.
func (v version) charged(l *rule, s state, now, ask int64) version {
	v = v.since(now)
	unasked, lifetime := now-v.left, max(v.l.lifetime(v.most), l.lifetime(l.full))
	if unasked >= retired*lifetime || v.fresh() && (unasked >= lifetime || l.since(s, now) == (state{})) {
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
	return v
}

// since is v as it stands at now, which is not before v.at. If it is as at first sight, the time is kept all the
// same: the current state may not be that.
func (v version) since(now int64) version {
	if v.state = v.l.since(v.state, now); v.fresh() {
		v.at = now
	}
	return v
}

// fresh says whether nothing is consumed in v.
func (v version) fresh() bool { return v.used+v.previous == 0 }

// lifetime is how long a state that has used so much takes to be as at first sight, at
// most.
func (l *rule) lifetime(used int64) int64 {
	switch l.algorithm {
	case AlgorithmTokenBucket:
		return l.perRate.ceil(used)
	case AlgorithmStepped:
		return l.perRefill.ceil(used) * l.period
	case AlgorithmFixedWindow:
		return l.period
	default:
		return 2 * l.period
	}
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
	last := version{l: old, state: s, most: old.mostUsed, sure: true, left: now}.since(now)
	switch {
	case other.l == nil:
		last.most, last.sure = 0, false
	case l.returns(other):
		other = other.since(now)
		if !last.neededBeside(l, other.state, old.capacity <= l.capacity) {
			last = version{}
		}
		return l.since(other.state, now), last, true // fresh, if it is full again
	default:
		other = other.since(now)
	}
	next, kept := l.carryOver(last, other, now)
	return next, kept, true
}

// returns says whether other is, for all that is known, the version l.
func (l *rule) returns(other version) bool {
	if other.sure && other.most != l.mostUsed {
		return false
	}
	return l.sameNumbers(other.l) && other.used <= l.mostUsed
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

// carryOver gives the state under l that follows from that of the two versions which
// tells more (there may be only the first), and that one if it is to be remembered beside
// it. What has passed of the period of a stepped bucket goes to one of the two alone.
func (l *rule) carryOver(v, w version, now int64) (state, version) {
	if w.l != nil && w.tellsMoreThan(v) {
		v = w
	}
	next := state{at: now, used: min(l.recounted(v), l.full)}
	needed := v.neededBeside(l, next, l.recounted(v) <= next.used)
	if l.algorithm == AlgorithmStepped && !needed {
		next.at -= worth(v.l, l, now-v.at)
	}
	if !needed {
		v = version{}
	} else if !v.sure {
		v.most = max(v.most, v.mostBeside(l, now))
	}
	return version{l: l, state: next}.since(now).state, v
}

// neededBeside says whether v has to be remembered beside next, the state under l: a bucket
// if that does not hold what was consumed, or if v is faster and would be short of what
// flows into it; a window always, because its length is another. There is nothing to
// remember of a key at first sight.
func (v version) neededBeside(l *rule, next state, fits bool) bool {
	switch {
	case v.fresh() && next.used+next.previous == 0:
		return false
	case !l.isBucket():
		return true
	default:
		return !fits || v.l.fasterThan(l)
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

// mostBeside is what may come to miss in v, from which l takes over, before its version
// comes back: what misses now or, if that is less, what may be granted under l. It stands
// in for what a full bucket of that version holds, which the store in Redis does not know
// then. A stepped bucket may miss a step more than that, but for what of it has passed.
func (v version) mostBeside(l *rule, now int64) int64 {
	switch v.l.algorithm {
	case AlgorithmTokenBucket:
		if l.capacity > maxExact/2/v.l.unit {
			return maxExact / 2
		}
		return max(v.used, l.capacity*v.l.unit)
	case AlgorithmStepped:
		return min(max(v.used-due(v.l, now-v.at), l.capacity)+v.l.refill, v.l.mostStepped())
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
