package headgate

import (
	"context"
	"time"
)

// Waiter makes callers wait their turn: a [Gate], a [SharedGate], or a limiter for one key
// ([Limiter.Waiter]).
// [Throttle], [ForEach], [NewReader] and [NewWriter] work with any.
type Waiter interface {
	// WaitN returns nil when the turn of n tokens has come; they pass together.
	// If it returns an error, none has passed and nothing is charged.
	WaitN(ctx context.Context, n int64) error

	// Most is the largest n that can ever pass together.
	Most() int64

	// Rate is how many tokens pass in a period in the long run; 0 if there is no end to them.
	Rate() (n int64, period time.Duration)
}
