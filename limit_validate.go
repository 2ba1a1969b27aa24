package headgate

import (
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

const maxExact = algorithm.MaxExact

// Validate returns an [InvalidError] if l is not valid, and otherwise nil. The error names the
// first wrong value, and what would be accepted.
func (l Limit) Validate() error {
	switch {
	case l.valid():
		return nil
	case l == Unlimited():
		return wrong("limit", "Unlimited", "a limit with numbers")
	case l.rule == nil || l.rule.Algorithm == 0:
		return wrong("limit", "the zero Limit", "one made by a constructor or ParseLimit")
	}
	return check(l.terms())
}

// check finds the first fault in t. It returns nil, not a nil *InvalidError.
func check(t *terms) error {
	count, period := "count", "window"
	if t.IsBucket() {
		count, period = "capacity", "period"
	}
	switch {
	case t.Name != "" && !validName(t.Name):
		return wrong("limit name", strconv.Quote(t.Name),
			"1 to 64 letters, digits, '.', '-' and '_', beginning with a letter")
	case t.Capacity < 0, t.Capacity == 0 && t.Algorithm != algorithm.FixedWindow:
		if t.Capacity == t.Refill { // no burst was given
			count = "count"
		}
		return invalid(count, t.Capacity, `at least 1, or "0/d fixed-window" to deny all`)
	case !t.IsBucket() && t.Refill != 0:
		return invalid("burst", t.Refill, "none: only buckets have a burst")
	case t.IsBucket() && (t.Refill < 1 || t.Refill > maxExact):
		return invalid("refill", t.Refill,
			"a whole number from 1 to "+strconv.FormatInt(maxExact, 10))
	case t.Every < time.Microsecond:
		return wrong(period, t.Every.String(), "at least 1µs")
	case t.Every%time.Microsecond != 0:
		return wrong(period, t.Every.String(), "whole microseconds")
	case t.Every.Microseconds() > maxExact:
		return wrong(period, t.Every.String(), "at most 285 years")
	}
	if fault := t.CalendarFault(); fault != nil {
		return (*InvalidError)(fault)
	}
	most := t.MaxCapacity()
	if most < 1 {
		return wrong(period, t.Every.String(), "a shorter one")
	}
	if t.Capacity > most {
		return invalid(count, t.Capacity, "at most "+strconv.FormatInt(most, 10)+" "+reason(t))
	}
	return nil
}

// reason is why a capacity has a bound.
func reason(t *terms) string {
	switch t.Algorithm {
	case algorithm.TokenBucket:
		return "to count this rate exactly"
	case algorithm.Stepped:
		return "to count a period this long exactly; a token bucket allows more"
	case algorithm.SlidingWindow:
		return "to weigh a window this long exactly; a token bucket or a fixed window allows more"
	case algorithm.SlidingLog:
		return "because a log keeps every grant; a sliding window allows more"
	default:
		return "to be counted exactly"
	}
}

func validName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	rest := strings.TrimLeft(s, letters)
	return len(s) <= 64 && len(rest) < len(s) && strings.Trim(rest, letters+"0123456789.-_") == ""
}
