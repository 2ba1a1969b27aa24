package algorithm

import "math"

// Adopt returns a state that was charged under old, which has the same ID, as l counts it.
// A bucket keeps the fraction that is used, and time refills it at the rate of l.
//
// It reports whether the numbers differ.
func (l *Rule) Adopt(old *Rule, s State) (adopted State, scaled bool) {
	if old == l || !l.IsBucket() {
		return s, false
	}
	s.Used = scale(s.Used, old.full, l.full, l.maxUsed)
	if l.Algorithm == TokenBucket {
		return s, old.full != l.full
	}
	if scaled = old.Capacity != l.Capacity || old.Refill != l.Refill ||
		old.period != l.period; scaled {
		s.Step = s.At
	}
	return s, scaled
}

// scale returns part x to / from, rounded up, at most to; if part is above from, at most most.
// Lua has only doubles, so both compute in doubles; where the product passes 2^53 nonetheless, 1
// more makes up for the rounding.
func scale(part, from, to, most int64) int64 {
	if from == to {
		return min(part, most)
	}
	g := GCD(from, to)
	product := float64(part) * float64(to/g)
	scaled := math.Ceil(product / float64(from/g))
	if product > MaxExact {
		scaled++
	}
	if part <= from {
		most = to
	}
	return int64(min(scaled, float64(most)))
}
