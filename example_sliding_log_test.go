package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I grant at most 2 in any hour, wherever it begins?
func ExampleSlidingLog() {
	store, limit := headgate.NewMemory(), headgate.SlidingLog(2, time.Hour)
	noon := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for _, minute := range []int{0, 50, 59, 60, 61, 110} {
		d, _ := store.Take(context.Background(), headgate.Request{
			Key: "user:42", Limit: limit, Cost: 1,
			At: noon.Add(time.Duration(minute) * time.Minute),
		})
		fmt.Println(minute, d.Allowed(), d.RetryAfter)
	}
	// Output:
	// 0 true 0s
	// 50 true 0s
	// 59 false 1m0s
	// 60 true 0s
	// 61 false 49m0s
	// 110 true 0s
}
