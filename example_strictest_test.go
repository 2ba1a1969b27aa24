package headgate_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I find the limit that denied for the longest?
func ExampleStrictest() {
	burst, quota := headgate.PerSecond(1).Burst(20), headgate.FixedWindow(1000, 24*time.Hour)
	d := headgate.Strictest([]headgate.Decision{
		{Limit: burst, RetryAfter: time.Second},
		{Limit: quota, RetryAfter: 7 * time.Hour},
	})
	fmt.Println(d.Limit, d.RetryAfter)
	// Output: 1000/d fixed-window 7h0m0s
}
