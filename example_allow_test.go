package headgate_test

import (
	"context"
	"fmt"

	"github.com/headgate/headgate"
)

// How do I limit each user to 100 requests per minute, in bursts of up to 20?
func Example() {
	limit := headgate.PerMinute(100).Burst(20)
	limiter, err := headgate.NewLimiter(headgate.NewMemory(), limit)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := limiter.Allow(context.Background(), "user:42")
	if err != nil {
		fmt.Println("the store is unavailable:", err) // Memory returns no error for a valid limit
		return
	}
	if !d.Allowed() {
		fmt.Println("retry in", d.RetryAfter)
		return
	}
	fmt.Println("welcome,", d.Remaining, "left")
	// Output: welcome, 19 left
}
