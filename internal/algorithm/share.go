package algorithm

import (
	"math/bits"
	"time"
)

// Divide makes t the share of one of n instances.
func (t *Terms) Divide(n int64) {
	count := t.Capacity
	t.Capacity = max(count/n, min(count, 1))
	switch {
	case t.Algorithm == TokenBucket:
		t.divideRate(n)
	case t.Algorithm == Stepped && t.Refill >= n:
		t.Refill /= n
	case t.Algorithm == Stepped:
		t.prolong((n+t.Refill-1)/t.Refill, MaxExact)
		t.Refill = 1
	case t.Algorithm == SlidingWindow && count < n:
		t.prolong((n+count-1)/count, MaxExact/2)
	case count > 0 && count < n:
		if t.Algorithm == CalendarWindow { // a fixed window can be longer than its unit
			t.Algorithm, t.Zone, t.Month, t.Day = FixedWindow, "", 0, 0
		}
		t.prolong((n+count-1)/count, MaxExact)
	}
	t.Capacity = min(t.Capacity, t.MaxCapacity())
}

// divideRate gives a token bucket the nth part of its rate: exactly, unless that cannot be
// counted, and else as one token in a time that is rounded up.
func (t *Terms) divideRate(n int64) {
	exact := *t
	common := GCD(t.Refill, n)
	exact.Refill /= common
	exact.prolong(n/common, MaxExact+1)
	if exact.Every <= MaxExact*time.Microsecond && exact.MaxCapacity() >= exact.Capacity {
		*t = exact
		return
	}
	high, low := bits.Mul64(uint64(t.Every.Microseconds()), uint64(n))
	every := uint64(MaxExact / 2)
	if refill := uint64(t.Refill); high < refill {
		quotient, rest := bits.Div64(high, low, refill)
		every = min(every, quotient+min(rest, 1))
	}
	t.Refill, t.Every = 1, time.Duration(every)*time.Microsecond
}

// prolong makes the period n times as long, and at most limit microseconds.
func (t *Terms) prolong(n, limit int64) {
	high, micros := bits.Mul64(uint64(t.Every.Microseconds()), uint64(n))
	if high > 0 || micros > uint64(limit) {
		micros = uint64(limit)
	}
	t.Every = time.Duration(micros) * time.Microsecond
}
