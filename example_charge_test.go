package headgate_test

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
)

// How do I charge what was used already, even if it is more than is left?
func ExampleLimiter_Charge() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(), headgate.PerDay(10_000))

	d, _ := limiter.Peek(ctx, "model") // is anything left?
	fmt.Println(d.Allowed(), d.Remaining)
	d, _ = limiter.Charge(ctx, "model", 12_000) // what the call took
	fmt.Println(d.Allowed(), d.Remaining)
	d, _ = limiter.Peek(ctx, "model") // once 2,001 tokens have come back
	fmt.Println(d.Allowed(), d.Remaining, d.RetryAfter.Hours() > 4)
	// Output:
	// true 10000
	// false -2000
	// false 0 true
}
