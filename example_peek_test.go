package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I show what is left, without charging for it?
func ExampleLimiter_Peek() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(), headgate.SlidingLog(3, time.Hour))
	_, _ = limiter.Allow(ctx, "user:42")
	for range 2 {
		d, _ := limiter.Peek(ctx, "user:42")
		fmt.Printf("%d of %d left\n", d.Remaining, d.Limit.Capacity())
	}
	// Output:
	// 2 of 3 left
	// 2 of 3 left
}
