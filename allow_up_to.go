package headgate

import "context"

// AllowUpTo takes as many of n tokens of key as there are, and returns how many were granted: 0 to
// n. Only these are charged. n must be at least 1. If none was granted, RetryAfter is usually the
// wait for one token. If tokens arrived during the call, or if a deny cache answered, it may be the
// wait for n tokens.
//
// It calls the store once if at least n tokens are left, and otherwise a few times. If other
// callers take tokens between these calls, it asks for fewer tokens. It does not ask for tokens
// that arrive meanwhile. So it grants as many tokens as were left at some moment of the call.
func (l *Limiter) AllowUpTo(ctx context.Context, key string, n int64) (int64, Decision, error) {
	if n < 1 {
		return 0, Decision{}, invalid("n", n, "at least 1")
	}
	for {
		d, err := l.take(ctx, key, n)
		switch {
		case err != nil:
			return 0, Decision{}, err
		case d.Allowed():
			return n, d, nil
		}
		if d.Remaining < 1 && n > 1 { // a deny cache does not know how many are left
			left, err := l.take(ctx, key, 0)
			if err != nil || left.Remaining >= n { // they came meanwhile, or around the cache
				return 0, d, err
			}
			d = left
		}
		if d.Remaining < 1 {
			return 0, d, nil
		}
		n = d.Remaining
	}
}
