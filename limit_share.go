package headgate

import (
	"math/bits"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Share returns the part of l that one of several instances may grant by itself, so that all
// instances together keep l while they cannot reach the store. The share has the name and the ID of
// l; [Decision.Degraded] distinguishes the two. If instances is below 1, the number is unknown: do
// not decide by that share. A fallback puts it into unchecked decisions ([Decision.Unchecked]).
//
// A bucket's capacity is divided and rounded down. The rate of a token bucket is divided exactly;
// the step of a stepped bucket and the count of a window are rounded down. A share has at least one
// token: if less would be left, its period or window is longer instead. So over time, and as long
// as instances stays the same, all shares together grant at most what l grants. Their capacities
// add up to at most the capacity of l, or to one token for each instance if that is more. No share
// is slower than one token in 142 years. An invalid limit is its own share.
func (l Limit) Share(instances int) Limit {
	if !l.valid() {
		return l
	}
	t := *l.terms()
	t.ShareOf, t.Unknown = l.rule.ID, instances < 1
	divide(&t, min(max(int64(instances), 1), maxExact))
	return newLimit(t)
}

// divide makes t the share of one of n instances.
func divide(t *terms, n int64) {
	count := t.Capacity
	t.Capacity = max(count/n, min(count, 1))
	switch {
	case t.Algorithm == algorithm.TokenBucket:
		divideRate(t, n)
	case t.Algorithm == algorithm.Stepped && t.Refill >= n:
		t.Refill /= n
	case t.Algorithm == algorithm.Stepped:
		prolong(t, (n+t.Refill-1)/t.Refill, maxExact)
		t.Refill = 1
	case t.Algorithm == algorithm.SlidingWindow && count < n:
		prolong(t, (n+count-1)/count, maxExact/2)
	case count > 0 && count < n:
		if t.Algorithm == algorithm.CalendarWindow { // a fixed window can be longer than its unit
			t.Algorithm, t.Zone, t.Month, t.Day = algorithm.FixedWindow, "", 0, 0
		}
		prolong(t, (n+count-1)/count, maxExact)
	}
	t.Capacity = min(t.Capacity, t.MaxCapacity())
}

// divideRate gives a token bucket the nth part of its rate: exactly, unless that cannot be
// counted, and else as one token in a time that is rounded up.
func divideRate(t *terms, n int64) {
	exact := *t
	common := algorithm.GCD(t.Refill, n)
	exact.Refill /= common
	prolong(&exact, n/common, maxExact+1)
	if exact.Every <= maxAhead && exact.MaxCapacity() >= exact.Capacity {
		*t = exact
		return
	}
	high, low := bits.Mul64(uint64(t.Every.Microseconds()), uint64(n))
	every := uint64(maxExact / 2)
	if refill := uint64(t.Refill); high < refill {
		quotient, rest := bits.Div64(high, low, refill)
		every = min(every, quotient+min(rest, 1))
	}
	t.Refill, t.Every = 1, time.Duration(every)*time.Microsecond
}

// prolong makes the period n times as long, and at most limit microseconds.
func prolong(t *terms, n, limit int64) {
	high, micros := bits.Mul64(uint64(t.Every.Microseconds()), uint64(n))
	if high > 0 || micros > uint64(limit) {
		micros = uint64(limit)
	}
	t.Every = time.Duration(micros) * time.Microsecond
}
