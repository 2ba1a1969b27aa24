package acts

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/service/internal/rules"
)

// used is what a key had used under a limit when it was reset.
type used struct {
	Limit   string `json:"limit"` // with its name
	Tokens  int64  `json:"tokens"`
	ResetIn int64  `json:"reset_in"` // microseconds
}

// measure returns what key has used under limits. Limits that share a state are measured once.
func (d *Desk) measure(
	ctx context.Context, key string, limits []headgate.Limit,
) (all []used, err error) {
	seen := map[string]bool{}
	for _, l := range limits {
		if seen[l.ID()] {
			continue
		}
		seen[l.ID()] = true
		now, err := d.o.Store.Take(ctx, headgate.Request{Key: key, Limit: l})
		if err != nil {
			return nil, err
		}
		if now.Degraded() {
			return nil, errors.New("acts: the store is unavailable")
		}
		if now.ResetAfter > 0 {
			all = append(all, used{
				Limit: l.String(), Tokens: l.Capacity() - now.Remaining,
				ResetIn: now.ResetAfter.Microseconds(),
			})
		}
	}
	return all, nil
}

// chargeBack charges what r has reset, less what would have come back since.
func (d *Desk) chargeBack(ctx context.Context, r *record) error {
	requests := r.left(time.Now())
	decisions := make([]headgate.Decision, len(requests))
	if err := rules.Take(ctx, d.o.Store, requests, decisions); err != nil {
		return err
	}
	for _, d := range decisions {
		if d.Degraded() {
			return errors.New("acts: the store is unavailable")
		}
	}
	return nil
}

// left returns the requests that charge what would still be used if r had not reset its key.
func (r *record) left(now time.Time) (requests []headgate.Request) {
	for _, u := range r.Used {
		l, err := headgate.ParseLimit(u.Limit)
		if err != nil {
			continue // of another version
		}
		if n := u.left(l, now.Sub(time.UnixMilli(r.At))); n > 0 {
			requests = append(requests,
				headgate.Request{Key: r.Key, Limit: l, Cost: n, Force: true})
		}
	}
	return requests
}

// left returns how many of the tokens would still be used after the given time. It is exact for
// buckets and fixed windows; logs and sliding windows are taken to empty evenly.
func (u *used) left(l headgate.Limit, after time.Duration) int64 {
	left := u.ResetIn - max(after.Microseconds(), 0)
	if left <= 0 {
		return 0
	}
	period := l.Period().Microseconds()
	switch l.Algorithm() {
	case headgate.AlgorithmFixedWindow:
		return u.Tokens
	case headgate.AlgorithmTokenBucket:
		// ResetIn is rounded up to a microsecond, which must not become a token. Of a bucket that
		// was forced, it shows more than the tokens.
		return ceiling(left-1, l.Refill(), period)
	case headgate.AlgorithmStepped:
		steps := ceiling(u.ResetIn, 1, period) - ceiling(left, 1, period)
		return max(u.Tokens-steps*l.Refill(), 0)
	}
	return ceiling(left, u.Tokens, u.ResetIn)
}

// ceiling returns a*b/c, rounded up, bounded by what any limit can hold.
func ceiling(a, b, c int64) int64 {
	const most = 1<<53 - 1
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if c <= 0 || hi >= uint64(c) {
		return most
	}
	n, rest := bits.Div64(hi, lo, uint64(c))
	if rest > 0 {
		n++
	}
	return int64(min(n, most))
}
