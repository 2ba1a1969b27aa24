package ratelimiter

import "context"

// await runs call and returns what it gives, or the error of ctx as soon as ctx ends.
// Clients of go-redis do not look at a context while they wait for an answer, unless
// they are told to (ContextTimeoutEnabled); a call that is left alone ends by their
// timeouts. Nothing is begun for a context that has ended already.
func await(ctx context.Context, call func() ([]int64, error)) ([]int64, error) {
	if ctx.Done() == nil {
		return call()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	type result struct {
		numbers []int64
		err     error
	}
	done := make(chan result, 1)
	go func() {
		numbers, err := call()
		done <- result{numbers, err}
	}()
	select {
	case r := <-done:
		return r.numbers, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
