package fallback

import (
	"context"
	"errors"
)

// ErrDegraded is in the error of a [Store] where its store could not say, and nothing else may. The error tells why,
// and wraps that unless it is the error of a context: so the errors of package context are in
// it only if the caller's own has ended.
var ErrDegraded = errors.New("fallback: the store could not say")

// undecidedError is ErrDegraded, and why.
type undecidedError struct{ why error }

func (e *undecidedError) Error() string { return ErrDegraded.Error() + ": " + e.why.Error() }

func (e *undecidedError) Unwrap() []error {
	if errors.Is(e.why, context.DeadlineExceeded) || errors.Is(e.why, context.Canceled) {
		return []error{ErrDegraded} // that context was another's, or the budget
	}
	return []error{ErrDegraded, e.why}
}
