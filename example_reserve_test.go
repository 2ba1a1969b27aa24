package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I charge for a call whose cost is known only afterwards?
func ExampleLimiter_ReserveNow() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(
		headgate.NewMemory(), headgate.FixedWindow(10_000, 24*time.Hour))

	r, err := limiter.ReserveNow(ctx, "model", 4000) // the most that the call can take
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := r.Commit(ctx, 1234); err != nil { // what it took
		fmt.Println(err)
	}
	d, _ := limiter.Peek(ctx, "model")
	fmt.Println(d.Remaining, "left")
	// Output: 8766 left
}
