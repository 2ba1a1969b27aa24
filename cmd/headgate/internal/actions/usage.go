package actions

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/envoy"
)

// used is what a key had used under a limit when it was reset.
type used struct {
	Key     string `json:"key"`   // of the state
	Limit   string `json:"limit"` // with its name
	Tokens  int64  `json:"tokens"`
	ResetIn int64  `json:"reset_in"` // microseconds
}

// measure returns what is used in slots. Slots that share a state are measured once.
func (d *Desk) measure(ctx context.Context, slots []envoy.Slot) (all []used, err error) {
	type state struct{ key, id string }
	seen := map[state]bool{}
	for _, s := range slots {
		if seen[state{s.Key, s.Limit.ID()}] {
			continue
		}
		seen[state{s.Key, s.Limit.ID()}] = true
		now, err := s.Store.Take(ctx, headgate.Request{Key: s.Key, Limit: s.Limit})
		if err != nil {
			return nil, err
		}
		if now.Degraded() {
			return nil, errDegraded
		}
		if now.ResetAfter > 0 {
			all = append(all, used{
				Key: s.Key, Limit: s.Limit.String(), Tokens: s.Limit.Capacity() - now.Remaining,
				ResetIn: now.ResetAfter.Microseconds(),
			})
		}
	}
	return all, nil
}

// errDegraded is of a store whose fallback decides.
var errDegraded = errors.New("acts: the store is unavailable")

// chargeBack charges what r has reset, less what would have come back since.
func (d *Desk) chargeBack(ctx context.Context, r *record) error {
	slots := d.slots(r)
	for _, q := range r.left(time.Now()) {
		store := d.o.Store
		for _, s := range slots {
			if s.Key == q.Key && s.Limit.ID() == q.Limit.ID() {
				store = s.Store // limits by the second of Envoy's dialect may have their own
			}
		}
		now, err := store.Take(ctx, q)
		if err != nil {
			return err
		}
		if now.Degraded() {
			return errDegraded
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
				headgate.Request{Key: u.Key, Limit: l, Cost: n, Force: true})
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
