package headgate

import (
	"math/bits"
	"strconv"
	"time"
)

// lending is how much of a limit is lent, and for how long.
type lending struct {
	limit Limit
	most  int64         // a loan is at most that, and all loans of a key within a term twice that
	term  time.Duration // for which tokens are lent; no more than most flow in meanwhile
	pool  Limit         // what loans are taken from besides the limit, lest there are more
	drain Limit         // whose turn it is to take tokens without use, to get a bucket down to the line
}

// A bucket refills while tokens that were taken from it wait in a process for their use, and
// full bucket and tokens would be too much together. So they may be used only if, after
// they were taken, line x most were missing from the bucket: no more than most flow in until
// the end of their term, and no more than 2 x most are lent, or given back by then. If less is
// missing, tokens are taken away until down x most are: by one process, lest many do it at once, and then by nobody for as long
// as most flow in, which is until they are missed again.
const (
	lineOfMost = 3
	downOfMost = 4
)

// lendingOf says how l is lent, and whether it is: not if so little can be that it saves
// nothing, nor if it has to be given back too soon.
func lendingOf(l Limit, share float64, term time.Duration) (lending, bool) {
	t := l.terms()
	most := int64(share * float64(t.capacity) / 2)
	if t.algorithm == AlgorithmFixedWindow {
		t.refill = t.capacity
	}
	lent := lending{limit: l, most: most, term: min(term, timeFor(most, t)).Truncate(time.Microsecond)}
	if most < leastTakes || lent.term < term/8 {
		return lending{}, false
	}
	id := strconv.FormatUint(l.rule.identity, 16)
	lent.pool = Per(most, lent.term).Burst(most).Named("lease-" + id)
	if lent.pool.Validate() != nil {
		return lending{}, false
	}
	if l.rule.isBucket() {
		t.name, t.capacity = "drain-"+id, most
		lent.drain = newLimit(t)
	}
	return lent, true
}

// timeFor is the longest time in which no more than most tokens flow in.
func timeFor(most int64, t terms) time.Duration {
	if t.algorithm == AlgorithmStepped { // one step more than whole periods may come
		return wholePeriods(most-most%t.refill, t) - time.Microsecond
	}
	return wholePeriods(most, t)
}

// wholePeriods is how long it takes until that many tokens have flown in, rounded down.
func wholePeriods(tokens int64, t terms) time.Duration {
	hi, lo := bits.Mul64(uint64(tokens), uint64(t.every))
	if hi >= uint64(t.refill) {
		return maxAhead
	}
	d, _ := bits.Div64(hi, lo, uint64(t.refill))
	return time.Duration(min(d, uint64(maxAhead)))
}

// missing is how many tokens, at least, are missing from a bucket in which so many remain.
func (l *lending) missing(remaining int64) int64 {
	return max(l.limit.Capacity()-remaining-1, 0) // which is what remains rounded down
}

// short is how many tokens are to be taken away from a bucket before loans of it may be
// used, if any are.
func (l *lending) short(remaining int64) int64 {
	if missing := l.missing(remaining); l.drain != (Limit{}) && missing < lineOfMost*l.most {
		return downOfMost*l.most - missing
	}
	return 0
}

// sizeFor is how many tokens to lend to a process that took so many within a span. It is no less
// than a 32nd of what can be lent, so that few loans are out.
func (l *lending) sizeFor(demand int64, span time.Duration) int64 {
	want := int64(float64(demand) * (float64(usable(l.term)) / float64(span)))
	return min(max(want, l.most/32, 1), l.most)
}
