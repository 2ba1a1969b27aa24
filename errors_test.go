package headgate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
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
		if got := Unavailable(t.Context(), row.err); got != row.want {
			t.Errorf("Unavailable(%v) = %v, want %v", row.err, got, row.want)
		}
	}
	left, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	for _, ctx := range []context.Context{left, late} {
		if err := fmt.Errorf("store: %w", ctx.Err()); Unavailable(ctx, err) {
			t.Errorf("Unavailable(%v) is true for the caller's own context", err)
		}
	}
}

func TestDeadlineErrorIsATimeout(t *testing.T) {
	var err error = &url.Error{Op: "Get", URL: "http://api.example", Err: &DeadlineError{}}
	if e, ok := errors.AsType[net.Error](err); !ok || !e.Timeout() {
		t.Errorf("%v is no timeout", err)
	}
}

func TestDeadlineErrorText(t *testing.T) {
	for want, err := range map[string]*DeadlineError{
		"headgate: the start time under 5/m is in 12s, after the deadline": {PerMinute(5),
			12 * time.Second},
		"headgate: the start time under 5/m is after the deadline": {Limit: PerMinute(5)},
		"headgate: the start time is in 12s, after the deadline":   {Wait: 12 * time.Second},
		"headgate: the start time is after the deadline":           {},
	} {
		if got := err.Error(); got != want || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q; want %q, a context.DeadlineExceeded", got, want)
		}
	}
}
