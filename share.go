package headgate

import (
	"math/bits"
	"time"
)

// Share is the part of l that each of so many instances may grant by itself, so that together
// they keep l while they cannot ask each other: for stores such as fallback.Store. Fewer than one
// instance counts as one. The share has the name and the ID of l, so its state is that of l
// under other numbers, and [Decision.Degraded] tells it from l.
//
// A bucket's capacity is divided and rounded down; the rate of a token bucket is divided exactly,
// the steps of a stepped one and the count of a window are rounded down. Where less than one
// token would be left, a share has one: a bucket of one token, or one step or one grant in a time that is
// so many periods or windows longer. So all shares together grant at most what l does over
// time, and at once at most what l does or one each, whichever is more.
//
// No share is slower than one token in 142 years. The share of a limit that is not valid is that
// limit.
func (l Limit) Share(instances int) Limit {
	if l.rule == nil || !l.rule.valid {
		return l
	}
	t := l.rule.terms
	t.shareOf = l.rule.id
	t.divide(min(max(int64(instances), 1), maxExact))
	return newLimit(t)
}

// divide makes t the share of one of n instances.
func (t *terms) divide(n int64) {
	count := t.capacity
	t.capacity = max(count/n, 1)
	switch {
	case t.algorithm == AlgorithmTokenBucket:
		t.divideRate(n)
	case t.algorithm == AlgorithmStepped && t.refill >= n:
		t.refill /= n
	case t.algorithm == AlgorithmStepped:
		t.prolong(ceilDiv(n, t.refill), maxExact)
		t.refill = 1
	case t.algorithm == AlgorithmSlidingWindow && count < n:
		t.prolong(ceilDiv(n, count), maxExact/2)
	case count < n:
		t.prolong(ceilDiv(n, count), maxExact)
	}
	t.capacity = min(t.capacity, t.mostExact())
}

// divideRate gives a token bucket the nth part of its rate: exactly, unless that cannot be
// counted, and else as one token in a time that is rounded up.
func (t *terms) divideRate(n int64) {
	exact := *t
	common := gcd(t.refill, n)
	exact.refill /= common
	exact.prolong(n/common, maxExact+1)
	if exact.every <= maxAhead && exact.mostExact() >= exact.capacity {
		*t = exact
		return
	}
	high, low := bits.Mul64(uint64(t.every.Microseconds()), uint64(n))
	every := uint64(maxExact / 2)
	if refill := uint64(t.refill); high < refill {
		quotient, rest := bits.Div64(high, low, refill)
		every = min(every, quotient+min(rest, 1))
	}
	t.refill, t.every = 1, time.Duration(every)*time.Microsecond
}

// prolong makes the period n times as long, and at most so many microseconds.
func (t *terms) prolong(n, most int64) {
	high, micros := bits.Mul64(uint64(t.every.Microseconds()), uint64(n))
	if high > 0 || micros > uint64(most) {
		micros = uint64(most)
	}
	t.every = time.Duration(micros) * time.Microsecond
}

// mostExact is the largest capacity that can be counted exactly with the rate of t.
func (t *terms) mostExact() int64 {
	most, _ := (&rule{terms: *t, period: t.every.Microseconds()}).most()
	return most
}
