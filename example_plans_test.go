package headgate_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// How do I give each plan limits of its own?
func ExampleNewLimiterFunc() {
	ctx := context.Background()
	plans := map[string][]headgate.Limit{
		"free": {headgate.FixedWindow(1, 24*time.Hour).Named("quota")},
		"paid": {headgate.FixedWindow(1000, 24*time.Hour).Named("quota")},
	}
	limiter, err := headgate.NewLimiterFunc(headgate.NewMemory(0),
		func(_ context.Context, key string) ([]headgate.Limit, error) {
			plan, _, _ := strings.Cut(key, ":")
			return plans[plan], nil // none for others: they are always allowed
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"free:1", "free:1", "paid:1", "paid:1", "staff:1"} {
		d, _ := limiter.Allow(ctx, key)
		fmt.Println(key, d.Allowed())
	}
	// Output:
	// free:1 true
	// free:1 false
	// paid:1 true
	// paid:1 true
	// staff:1 true
}
