package gate

import (
	"context"
	"time"
)

// Waiter makes callers wait until they may go on. [Gate], [SharedGate] and [KeyWaiter] are Waiters.
type Waiter interface {
	// WaitN returns nil when n tokens pass together. If it returns an error, none has passed.
	WaitN(ctx context.Context, n int64) error

	// Burst returns the largest n that can pass together.
	Burst() int64

	// Rate returns how many tokens pass in a period in the long run; 0 if that is not limited.
	Rate() (n int64, period time.Duration)
}

// missing is the error for a Waiter that is nil.
func missing(w Waiter) error {
	if w == nil {
		return invalid("waiter", "nil", "a Gate, a SharedGate or a KeyWaiter")
	}
	return nil
}
