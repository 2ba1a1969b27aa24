package gate

import (
	"context"
	"iter"
)

// Throttle passes on the elements of seq at the pace of w, one token each.
//
//	urls, stopped := gate.Throttle(ctx, g, slices.Values(all))
//	for url := range urls {
//		fetch(url)
//	}
//	if err := stopped(); err != nil {
//		return err // not all were fetched
//	}
//
// An element is fetched before Throttle waits for it, so the end of seq costs no token.
//
// The sequence ends early when waiting fails, because ctx has ended or w was closed; the element
// that waited is not passed on. stopped then returns the error. It returns nil while the loop
// runs, after its end and after a break, and a [headgate.InvalidError] if w is nil. Call it in the
// goroutine of the loop.
func Throttle[V any](
	ctx context.Context, w Waiter, seq iter.Seq[V],
) (throttled iter.Seq[V], stopped func() error) {
	var err error
	return func(yield func(V) bool) {
		if err = missing(w); err != nil {
			return
		}
		for v := range seq {
			if err = w.WaitN(ctx, 1); err != nil || !yield(v) {
				return
			}
		}
	}, func() error { return err }
}
