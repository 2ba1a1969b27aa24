// Package gocode writes the Go expressions of limits.
package gocode

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// Limit returns the Go expression that makes l, without its name.
func Limit(l headgate.Limit) string {
	every := duration(l.Period())
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return rate(l.Refill(), l.Period()) + burst(l)
	case headgate.AlgorithmSteppedTokenBucket:
		return fmt.Sprintf("headgate.SteppedTokenBucket(%d, %s)", l.Refill(), every) + burst(l)
	case headgate.AlgorithmFixedWindow:
		return fmt.Sprintf("headgate.FixedWindow(%d, %s)", l.Capacity(), every)
	case headgate.AlgorithmSlidingWindow:
		return fmt.Sprintf("headgate.SlidingWindow(%d, %s)", l.Capacity(), every)
	case headgate.AlgorithmCalendarWindow:
		return calendar(l)
	default:
		return fmt.Sprintf("headgate.SlidingLog(%d, %s)", l.Capacity(), every)
	}
}

// calendar returns the expression of a calendar, from its text.
func calendar(l headgate.Limit) string {
	words := strings.Fields(l.Named("").String())
	_, unit, _ := strings.Cut(words[0], "/")
	maker := map[string]string{
		"day": "Daily", "week": "Weekly", "month": "Monthly", "year": "Yearly",
	}
	code := []string{fmt.Sprintf("headgate.%s(%d)", maker[unit], l.Capacity())}
	for i := 1; i < len(words); i += 2 {
		value := words[i+1]
		month, day, date := strings.Cut(value, "-")
		switch {
		case words[i] == "tz" && value == "UTC":
		case words[i] == "tz":
			code = append(code, fmt.Sprintf(".In(%q)", value))
		case date:
			m, _ := strconv.Atoi(month)
			d, _ := strconv.Atoi(day)
			code = append(code, fmt.Sprintf(".AnchoredOn(time.%s, %d)", time.Month(m), d))
		default:
			code = append(code, ".Anchored("+value+")")
		}
	}
	return strings.Join(code, "")
}

// rate returns the constructor of a token bucket.
func rate(n int64, period time.Duration) string {
	switch period {
	case time.Second:
		return fmt.Sprintf("headgate.PerSecond(%d)", n)
	case time.Minute:
		return fmt.Sprintf("headgate.PerMinute(%d)", n)
	case time.Hour:
		return fmt.Sprintf("headgate.PerHour(%d)", n)
	case 24 * time.Hour:
		return fmt.Sprintf("headgate.PerDay(%d)", n)
	default:
		return fmt.Sprintf("headgate.Per(%d, %s)", n, duration(period))
	}
}

// burst returns the call that sets the burst of l, if it is not the default.
func burst(l headgate.Limit) string {
	if l.Capacity() == l.Refill() {
		return ""
	}
	return fmt.Sprintf(".Burst(%d)", l.Capacity())
}

// duration writes d in the largest unit of package time that divides it.
func duration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{
		{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"},
		{time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"},
	} {
		switch {
		case d == u.unit:
			return u.name
		case d%u.unit == 0:
			return strconv.FormatInt(int64(d/u.unit), 10) + "*" + u.name
		}
	}
	return strconv.FormatInt(d.Microseconds(), 10) + "*time.Microsecond"
}
