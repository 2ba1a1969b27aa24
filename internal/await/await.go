// Package await waits for a call or for a time to pass, but no longer than a context lasts.
package await

import (
	"context"
	"time"
)

// Do calls f, and reports true if ctx ends before f returns. Then f goes on in a goroutine of its
// own. A panic of f before that is raised in the caller.
func Do(ctx context.Context, f func()) (left bool) {
	if ctx.Done() == nil {
		f()
		return false
	}
	returned := make(chan any, 1)
	go func() {
		defer func() { returned <- recover() }() // also if f ends the goroutine
		f()
	}()
	select {
	case <-ctx.Done():
		return true
	case panicked := <-returned:
		if panicked != nil {
			panic(panicked)
		}
		return false
	}
}

// Settling returns a context for a call that settles what was begun, such as a refund. It has the
// values of ctx, and does not end with it. If the call may have to wait, it lasts for 5 seconds.
func Settling(ctx context.Context, waits bool) (context.Context, context.CancelFunc) {
	ctx = context.WithoutCancel(ctx)
	if !waits {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, 5*time.Second)
}

// Sleep waits for d. It returns the error of ctx if that ends before.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
