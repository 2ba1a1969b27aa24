package headgate

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
