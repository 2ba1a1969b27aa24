package headgate

import (
	"context"
	"time"
)

// Waiter returns l for one key, for use with package gate.
func (l *Limiter) Waiter(key string) *KeyWaiter { return &KeyWaiter{l, key} }

// KeyWaiter is a [Limiter] for one key. It implements gate.Waiter.
type KeyWaiter struct {
	limiter *Limiter
	key     string
}

// WaitN is [Limiter.WaitN].
func (w *KeyWaiter) WaitN(ctx context.Context, n int64) error {
	return w.limiter.WaitN(ctx, w.key, n)
}

// limits returns none where they cannot be had: WaitN returns why.
func (w *KeyWaiter) limits() []Limit {
	limits, _ := w.limiter.limits(context.Background(), w.key)
	return limits
}

// Burst returns the largest n that all limits of the key ever grant at once.
func (w *KeyWaiter) Burst() int64 {
	burst := unlimited.Remaining
	for _, l := range w.limits() {
		burst = min(burst, l.Capacity())
	}
	return burst
}

// Rate returns the rate of the slowest limit of the key, as n in each period; 0 if there is
// no limit.
func (w *KeyWaiter) Rate() (n int64, period time.Duration) {
	for _, l := range w.limits() {
		tokens := l.Capacity()
		if l.Refill() > 0 {
			tokens = l.Refill()
		}
		if n == 0 || float64(tokens)/float64(l.Period()) < float64(n)/float64(period) {
			n, period = tokens, l.Period()
		}
	}
	return n, period
}
