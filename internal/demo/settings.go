package demo

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// settings is a limit as in the form of the page.
type settings struct {
	Algorithm string `json:"algorithm"`
	Capacity  input  `json:"capacity"`         // of a bucket, or the count of a window
	Refill    input  `json:"refill,omitempty"` // of a bucket, each period
	Period    input  `json:"period"`           // or the window, such as 1s or 15m
}

// limit returns the limit, or an error for the first invalid field.
func (s settings) limit() (headgate.Limit, error) {
	bucket := s.Algorithm == headgate.AlgorithmTokenBucket.String() ||
		s.Algorithm == headgate.AlgorithmStepped.String()
	count, per := "count", "window"
	if bucket {
		count, per = "capacity", "period"
	}
	capacity, err := whole(count, s.Capacity)
	if err != nil {
		return headgate.Limit{}, err
	}
	refill := int64(0)
	if bucket {
		if refill, err = whole("refill", s.Refill); err != nil {
			return headgate.Limit{}, err
		}
	} else if s.Refill != "" {
		return headgate.Limit{}, &headgate.InvalidError{
			Field: "refill", Value: strconv.Quote(string(s.Refill)),
			Want: "none, because only buckets refill",
		}
	}
	every, err := period(per, s.Period)
	if err != nil {
		return headgate.Limit{}, err
	}
	limit, err := limitOf(s.Algorithm, capacity, refill, every)
	if err != nil {
		return headgate.Limit{}, err
	}
	return limit, limit.Validate()
}

func limitOf(
	algorithm string, capacity, refill int64, every time.Duration,
) (headgate.Limit, error) {
	switch algorithm {
	case "token-bucket":
		return headgate.Per(refill, every).Burst(capacity), nil
	case "stepped":
		return headgate.SteppedTokenBucket(refill, every).Burst(capacity), nil
	case "fixed-window":
		return headgate.FixedWindow(capacity, every), nil
	case "sliding-window":
		return headgate.SlidingWindow(capacity, every), nil
	case "sliding-log":
		return headgate.SlidingLog(capacity, every), nil
	}
	return headgate.Limit{}, &headgate.InvalidError{
		Field: "algorithm", Value: strconv.Quote(algorithm),
		Want: "token-bucket, stepped, fixed-window, sliding-window or sliding-log",
	}
}

func settingsOf(l headgate.Limit) settings {
	s := settings{
		Algorithm: l.Algorithm().String(),
		Capacity:  input(strconv.FormatInt(l.Capacity(), 10)),
		Period:    input(short(l.Period())),
	}
	if l.Refill() > 0 {
		s.Refill = input(strconv.FormatInt(l.Refill(), 10))
	}
	return s
}

// whole reads a whole number of at least 1.
func whole(field string, text input) (int64, error) {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < 1 {
		return 0, &headgate.InvalidError{
			Field: field, Value: strconv.Quote(string(text)), Want: "a whole number of at least 1",
		}
	}
	return n, nil
}

// period reads a period as in the text form of limits.
func period(field string, text input) (time.Duration, error) {
	bad := &headgate.InvalidError{
		Field: field, Value: strconv.Quote(string(text)), Want: "a time such as 500ms, 1s or 15m",
	}
	if strings.ContainsAny(string(text), "/= \t\n") {
		return 0, bad
	}
	l, err := headgate.ParseLimit("1/" + string(text) + " fixed-window")
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok && strings.HasPrefix(e.Want, "at ") {
		bad.Want = e.Want // it is a time, but too short or too long
	}
	if err != nil {
		return 0, bad
	}
	return l.Period(), nil
}

// short formats d as in the text form of limits: 1s, 15m, 90s.
func short(d time.Duration) string {
	_, text, _ := strings.Cut(headgate.FixedWindow(1, d).String(), "/")
	text, _, _ = strings.Cut(text, " ")
	if text[0] < '0' || text[0] > '9' {
		return "1" + text
	}
	return text
}
