package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I charge expensive requests more, and refund what was not used?
func ExampleLimiter_AllowN() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(
		headgate.NewMemory(), headgate.FixedWindow(1000, 24*time.Hour))

	d, _ := limiter.AllowN(ctx, "user:42", 600)
	fmt.Println("600 tokens:", d.Allowed(), d.Remaining)
	d, _ = limiter.AllowN(ctx, "user:42", 600)
	fmt.Println("600 more:", d.Allowed(), d.Remaining)
	d, _ = limiter.Refund(ctx, "user:42", 250)
	fmt.Println("250 were not used:", d.Remaining)
	d, _ = limiter.AllowN(ctx, "user:42", 1001)
	fmt.Println("more than a day holds:", d.Allowed(), d.RetryAfter == headgate.Never)
	// Output:
	// 600 tokens: true 400
	// 600 more: false 400
	// 250 were not used: 650
	// more than a day holds: false true
}
