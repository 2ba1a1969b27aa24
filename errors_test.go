package headgate

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestUnavailable(t *testing.T) {
	for _, row := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{&InvalidError{Field: "n", Value: "0", Want: "at least 1"}, false},
		{fmt.Errorf("rule: %w", &InvalidError{}), false},
		{&DeadlineError{}, false},
		{ErrNoBooking, false},
		{errors.New("connection refused"), true},
		{context.DeadlineExceeded, true}, // such as the time budget of a fallback
		{ErrFull, true},
		{ErrBadState, true},
	} {
		if got := Unavailable(row.err); got != row.want {
			t.Errorf("Unavailable(%v) = %v, want %v", row.err, got, row.want)
		}
	}
}

func TestDeadlineErrorText(t *testing.T) {
	for want, err := range map[string]*DeadlineError{
		"headgate: the start time under 5/m is in 12s, after the deadline": {PerMinute(5), 12 * time.Second},
		"headgate: the start time under 5/m is after the deadline":         {Limit: PerMinute(5)},
		"headgate: the start time is in 12s, after the deadline":           {Wait: 12 * time.Second},
		"headgate: the start time is after the deadline":                   {},
	} {
		if got := err.Error(); got != want || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q; want %q, a context.DeadlineExceeded", got, want)
		}
	}
}
