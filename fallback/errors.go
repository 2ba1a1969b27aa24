package fallback

import (
	"context"
	"errors"
)

// ErrDegraded is wrapped by the error of a call that only the store can answer, while it is
// unavailable.
//
// The error also wraps the store's error, unless a context ended, perhaps that of another caller.
// So it is context.Canceled or context.DeadlineExceeded only if the caller's own context ended.
var ErrDegraded = errors.New("fallback: store unavailable")

type degradedError struct{ why error }

func (e *degradedError) Error() string { return ErrDegraded.Error() + ": " + e.why.Error() }

func (e *degradedError) Unwrap() []error {
	if errors.Is(e.why, context.DeadlineExceeded) || errors.Is(e.why, context.Canceled) {
		return []error{ErrDegraded} // the time budget, or another caller's context
	}
	return []error{ErrDegraded, e.why}
}
