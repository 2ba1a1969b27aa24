package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I apply several limits at once, such as a burst and a daily quota?
func ExampleNewLimiter_severalLimits() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(),
		headgate.PerHour(1).Burst(3).Named("burst"),
		headgate.FixedWindow(1000, 24*time.Hour).Named("quota"),
	)
	for range 4 {
		d, _ := limiter.Allow(ctx, "user:42")
		fmt.Println(d.Allowed(), d.Limit.Name(), d.Remaining)
	}
	// Output:
	// true burst 2
	// true burst 1
	// true burst 0
	// false burst 0
}
