package fallback

import (
	"context"
	"errors"
)

// ErrDegraded is wrapped by the error of a call that only the store can answer, if the store is
// unavailable.
//
// The error also wraps the store's error, unless that error is of a context: the time budget, or
// another caller's context. So a caller gets context.Canceled or context.DeadlineExceeded only if
// its own context has ended.
var ErrDegraded = errors.New("fallback: store unavailable")

type degradedError struct{ why error }

func (e *degradedError) Error() string { return ErrDegraded.Error() + ": " + e.why.Error() }

func (e *degradedError) Unwrap() []error {
	if errors.Is(e.why, context.DeadlineExceeded) || errors.Is(e.why, context.Canceled) {
		return []error{ErrDegraded} // the time budget, or another caller's context
	}
	return []error{ErrDegraded, e.why}
}
