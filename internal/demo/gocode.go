package demo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/headgate/headgate"
)

// goCode is the call that makes l.
func goCode(l headgate.Limit) string {
	every := goDuration(l.Period())
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return fmt.Sprintf("headgate.TokenBucket(%d, %d, %s)", l.Capacity(), l.Refill(), every)
	case headgate.AlgorithmStepped:
		return fmt.Sprintf("headgate.SteppedTokenBucket(%d, %d, %s)", l.Capacity(), l.Refill(), every)
	case headgate.AlgorithmFixedWindow:
		return fmt.Sprintf("headgate.FixedWindow(%d, %s)", l.Capacity(), every)
	case headgate.AlgorithmSlidingWindow:
		return fmt.Sprintf("headgate.SlidingWindow(%d, %s)", l.Capacity(), every)
	default:
		return fmt.Sprintf("headgate.SlidingLog(%d, %s)", l.Capacity(), every)
	}
}

// goDuration writes d in the largest unit of package time that divides it.
func goDuration(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{time.Hour, "time.Hour"}, {time.Minute, "time.Minute"}, {time.Second, "time.Second"}, {time.Millisecond, "time.Millisecond"}} {
		switch {
		case d == u.unit:
			return u.name
		case d%u.unit == 0:
			return strconv.FormatInt(int64(d/u.unit), 10) + "*" + u.name
		}
	}
	return strconv.FormatInt(d.Microseconds(), 10) + "*time.Microsecond"
}
