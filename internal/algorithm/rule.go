// Package algorithm holds the arithmetic of limits: one pure function for each algorithm,
// from the rule, the state, the time and the cost to the next state and the verdict.
//
// Time is in whole microseconds. Every number stays below 2^53, so that the int64 of Go
// and the double of Lua agree. Each function here has a twin in redisstore.
package algorithm

import (
	"hash/fnv"
	"time"
)

// Name is the name of an algorithm.
type Name uint8

// The algorithms.
const (
	TokenBucket Name = iota + 1
	Stepped
	FixedWindow
	SlidingWindow
	SlidingLog
	CalendarWindow
)

const (
	// MaxExact is the largest whole number that int64 and double hold alike together
	// with all its neighbours.
	MaxExact = 1<<53 - 1

	// MaxLog bounds a sliding log, which keeps every grant in its window.
	MaxLog = 1<<16 - 1

	// maxPair bounds a sliding window, whose two counts share one word in Memory.
	maxPair = 1<<32 - 1

	// maxPacked bounds (capacity + 1) x period of a stepped bucket, which Memory packs
	// into one word.
	maxPacked = 1 << 62

	// maxPerStep bounds what a stepped bucket may have used for each period that can be counted,
	// so that it fits the same word.
	maxPerStep = 1000
)

// Terms are the numbers of a limit and its name: equal terms are one limit.
type Terms struct {
	Name      string
	Algorithm Name
	Capacity  int64         // the most tokens held at once, or the most grants in a window
	Refill    int64         // tokens that arrive each period; buckets only
	Every     time.Duration // the refill period, or the window; of a calendar: its unit
	Zone      string        // calendars only: the time zone
	Month     time.Month    // of a yearly calendar: the month of its anchor
	Day       int           // of a monthly or yearly calendar: the day of its anchor
	ShareOf   string        // of a share: the ID of the limit that it is a part of
	Unknown   bool          // of a share: the number of instances is unknown
}

// IsBucket reports whether the algorithm has a refill.
func (t *Terms) IsBucket() bool { return t.Algorithm == TokenBucket || t.Algorithm == Stepped }

// Rule is the terms of a limit and what each decision needs of them, computed once.
type Rule struct {
	Terms
	ID    string // what state belongs to, besides the key
	Hash  uint64 // of ID, for Memory
	Valid bool

	// Unit and Rate are those of the token bucket: refill/period reduced to rate/unit, so that a
	// token is Unit units and Rate units arrive each microsecond. Otherwise a token is 1.
	Unit, Rate int64

	period int64 // Every in microseconds
	full   int64 // units in a full bucket
	repay  int64 // microseconds after which a token bucket is full, whatever was used

	maxUsed   int64 // what forced requests can raise what is used to
	maxRefund int64 // tokens that are more than any use

	perPeriod, perRefill, perUnit, perRate divisor

	calendar *calendar // nil for other algorithms
}

// NewRule computes the rule for terms whose numbers can be counted exactly, and for id.
func NewRule(t Terms, id string) *Rule {
	hash := fnv.New64a() // mixed with a keyed hash of the key before it chooses a slot
	_, _ = hash.Write([]byte(id))
	r := &Rule{Terms: t, ID: id, Valid: true, Hash: mix(hash.Sum64()), Unit: 1,
		period: t.Every.Microseconds(), full: t.Capacity}
	r.perPeriod = newDivisor(r.period)
	r.maxUsed = MaxExact // in a log, as many as it keeps
	switch t.Algorithm {
	case TokenBucket:
		r.Rate, r.Unit = Fraction(t.Refill, r.period)
		r.perUnit, r.perRate = newDivisor(r.Unit), newDivisor(r.Rate)
		r.full = t.Capacity * r.Unit
		r.maxUsed = MaxExact / 2
		r.repay = r.perRate.ceil(r.maxUsed)
	case Stepped:
		r.perRefill = newDivisor(t.Refill)
		r.maxUsed = max(t.Capacity, min(MaxExact/2/r.period*min(t.Refill, maxPerStep), MaxExact/2))
	case SlidingWindow:
		r.maxUsed = min(maxPair, MaxExact/r.period)
	case CalendarWindow:
		r.calendar = newCalendar(&t)
	}
	r.maxRefund = MaxExact / r.Unit
	return r
}

// MaxCapacity returns the largest capacity that these terms can count exactly.
func (t *Terms) MaxCapacity() int64 {
	period := max(t.Every.Microseconds(), 1)
	switch t.Algorithm {
	case TokenBucket:
		return MaxExact / 2 / (period / GCD(t.Refill, period))
	case Stepped:
		return min(t.maxStepped(period), maxPacked/period-1, MaxExact/2)
	case SlidingWindow:
		return min(maxPair, MaxExact/2/period)
	case SlidingLog:
		return MaxLog
	default:
		return MaxExact
	}
}

// maxStepped is the largest capacity that whole steps fill in a time that can be counted.
func (t *Terms) maxStepped(period int64) int64 {
	steps := MaxExact / period
	if steps > MaxExact/t.Refill {
		return MaxExact
	}
	return steps * t.Refill
}

// Fraction returns refill/period in lowest terms.
func Fraction(refill, period int64) (rate, unit int64) {
	g := GCD(refill, period)
	return refill / g, period / g
}

// GCD is the greatest common divisor of a and b.
func GCD(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// mix spreads every bit of h over all of them (the finalizer of SplitMix64), so that
// limits of similar names lie far apart in a table.
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
