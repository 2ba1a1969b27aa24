package gate

import (
	"context"
	"math"
	"time"

	"github.com/headgate/headgate"
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

// KeyWaiter is a [Waiter] that waits for the limits of one key. Make one with [NewKeyWaiter].
type KeyWaiter struct {
	limiter *headgate.Limiter
	key     string
}

// NewKeyWaiter returns a Waiter that waits for the limits of key.
func NewKeyWaiter(l *headgate.Limiter, key string) *KeyWaiter { return &KeyWaiter{l, key} }

// WaitN calls [headgate.Limiter.WaitN] for the key.
func (w *KeyWaiter) WaitN(ctx context.Context, n int64) error {
	return w.limiter.WaitN(ctx, w.key, n)
}

// limits returns none after an error: WaitN returns the error.
func (w *KeyWaiter) limits() []headgate.Limit {
	limits, _ := w.limiter.Limits(context.Background(), w.key)
	return limits
}

// Burst returns the largest n that all limits of the key ever grant at once.
func (w *KeyWaiter) Burst() int64 {
	burst := int64(math.MaxInt64)
	for _, l := range w.limits() {
		burst = min(burst, l.Capacity())
	}
	return burst
}

// Rate returns the rate of the slowest limit of the key: n in each period. Without a limit, n is 0.
func (w *KeyWaiter) Rate() (n int64, period time.Duration) {
	for _, l := range w.limits() {
		tokens, each := l.Rate()
		if n == 0 || float64(tokens)/float64(each) < float64(n)/float64(period) {
			n, period = tokens, each
		}
	}
	return n, period
}
