package headgate

import (
	"reflect"
	"strconv"
	"time"
)

// Validate returns nil, or an [InvalidError] that names the first number of l
// that cannot be counted exactly, and what would be accepted.
func (l Limit) Validate() error {
	if l == Unlimited {
		return &InvalidError{Field: "limit", Value: "Unlimited", Want: "no limits at all for a key that has none"}
	}
	if l.rule == nil || l.rule.algorithm == 0 {
		return &InvalidError{Field: "limit", Value: "the zero Limit", Want: "one made by a constructor or ParseLimit"}
	}
	if l.rule.fault != nil {
		fault := *l.rule.fault
		return &fault
	}
	return nil
}

// validateStore refuses what could not be asked.
func validateStore(s Store) error {
	v := reflect.ValueOf(s)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || isZero(s) {
		return &InvalidError{Field: "store", Value: "nil or a zero value", Want: "a Store, such as NewMemory(0)"}
	}
	return nil
}

// isZero says whether s is one of ours that no constructor made.
func isZero(s Store) bool {
	m, ours := s.(*Memory)
	return ours && m.shards == nil
}

// check finds the first fault in the terms of r.
func (r *rule) check() *InvalidError {
	switch {
	case r.name != "" && !validName(r.name):
		return &InvalidError{"limit name", strconv.Quote(r.name), "1 to 64 letters, digits, '.', '-' and '_', beginning with a letter"}
	case r.algorithm == 0:
		return nil
	case r.capacity < 1:
		return faultNumber(r.countField(), r.capacity, "a whole number of at least 1")
	case !r.isBucket() && r.refill != 0:
		return faultNumber("burst", r.refill, "none: only buckets have a burst")
	case r.isBucket() && (r.refill < 1 || r.refill > maxExact):
		return faultNumber("refill", r.refill, "a whole number from 1 to "+strconv.FormatInt(maxExact, 10))
	case r.every < time.Microsecond:
		return &InvalidError{r.periodField(), r.every.String(), "at least 1µs"}
	case r.every%time.Microsecond != 0:
		return &InvalidError{r.periodField(), r.every.String(), "whole microseconds"}
	case r.period > maxExact:
		return &InvalidError{r.periodField(), r.every.String(), "at most 285 years"}
	}
	most, why := r.most()
	if most < 1 {
		return &InvalidError{r.periodField(), r.every.String(), "a shorter one, " + why}
	}
	if r.capacity > most {
		return faultNumber(r.countField(), r.capacity, "at most "+strconv.FormatInt(most, 10)+" "+why)
	}
	return nil
}

// most is the largest capacity that r can count exactly, and why.
func (r *rule) most() (n int64, why string) {
	switch r.algorithm {
	case AlgorithmTokenBucket:
		return maxExact / 2 / (r.period / gcd(r.refill, r.period)), "to count this rate exactly; a rounder one, such as " + strconv.FormatInt(rounder(r.refill), 10) + ", allows more"
	case AlgorithmStepped:
		if n = r.mostStepped(); n == maxExact {
			return n, "to be counted exactly"
		}
		return n, "so that the bucket fills within 285 years"
	case AlgorithmSlidingWindow:
		return r.mostCount(), "to weigh a window this long exactly; a token bucket or a fixed window allows more"
	case AlgorithmSlidingLog:
		return maxLog, "because a log keeps every grant; a sliding window allows more"
	default:
		return maxExact, "to be counted exactly"
	}
}

// rounder is n with all digits but its first replaced by zeros.
func rounder(n int64) int64 {
	power := int64(1)
	for n/power >= 10 {
		power *= 10
	}
	return n / power * power
}

// mostStepped is the largest capacity that whole steps fill in time that can be counted.
func (r *rule) mostStepped() int64 {
	steps := maxExact / r.period
	if steps > maxExact/r.refill {
		return maxExact
	}
	return steps * r.refill
}

// mostCount is the largest count that a sliding window can weigh exactly.
func (r *rule) mostCount() int64 { return min(maxPair, maxExact/2/r.period) }

func (r *terms) isBucket() bool {
	return r.algorithm == AlgorithmTokenBucket || r.algorithm == AlgorithmStepped
}

func (r *terms) countField() string {
	if r.isBucket() {
		return "capacity"
	}
	return "count"
}

func (r *terms) periodField() string {
	if r.isBucket() {
		return "period"
	}
	return "window"
}

func faultNumber(field string, n int64, want string) *InvalidError {
	return &InvalidError{field, strconv.FormatInt(n, 10), want}
}

func validName(s string) bool {
	if len(s) > 64 || s == "" || !isLetter(s[0]) {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !isLetter(c) && !isDigit(c) && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
