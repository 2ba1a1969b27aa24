package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I change a limit while the program runs?
func ExampleLimiter_SetLimits() {
	ctx := context.Background()
	limit := headgate.SlidingLog(10, time.Hour).Named("api")
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(), limit)
	d, _ := limiter.AllowN(ctx, "user:42", 8)
	fmt.Println(d.Remaining, "of", d.Limit.Capacity())

	// The name is the same, so what is used is kept.
	_ = limiter.SetLimits(headgate.SlidingLog(20, time.Hour).Named("api"))
	d, _ = limiter.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, "of", d.Limit.Capacity())
	// Output:
	// 2 of 10
	// 12 of 20
}
