package console

import "math"

// counts are how often a rule decided how, in the order of outcomes below.
type counts [7]uint64

// The places in counts.
const (
	allowed = iota
	denied
	shadowDenied // also allowed
	failed
	degraded // also one of the others
	banned   // also denied
	tokens   // charged, if the rule has a cost
)

func (c counts) isZero() bool { return c == counts{} }

// addTo adds c to sum.
func (c counts) addTo(sum *counts) {
	for i, n := range c {
		sum[i] += n
	}
}

// since returns what was counted since before. A counter that was started again counts from 0.
func (c counts) since(before counts) counts {
	for i, n := range before {
		if n <= c[i] {
			c[i] -= n
		}
	}
	return c
}

// totals are counts of a step that belong to no rule.
type totals [4]uint64

// The places in totals.
const (
	asked   = iota // requests
	refused        // of these, those that were denied
	called         // calls of the store
	late           // of these, those that took slowStore or longer
)

func (t totals) addTo(sum *totals) {
	for i, n := range t {
		sum[i] += n
	}
}

// decisions returns how many decisions c holds.
func (c counts) decisions() uint64 { return c[allowed] + c[denied] + c[failed] }

// rates are counts for each second.
type rates [7]float64

// rate returns c for each of so many seconds, to the tenth.
func (c counts) rate(seconds float64) (r rates) {
	if seconds <= 0 {
		return r
	}
	for i, n := range c {
		r[i] = tenth(float64(n) / seconds)
	}
	return r
}

// tenth rounds to the tenth.
func tenth(v float64) float64 { return math.Round(v*10) / 10 }

func (r *rates) add(s rates) {
	for i, v := range s {
		r[i] += v
	}
}
