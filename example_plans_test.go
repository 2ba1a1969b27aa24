package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

type planKey struct{}

// How do I give each plan limits of its own? The plan is in the context and not in the key, so a
// customer who upgrades keeps what was used.
func ExampleNewLimiterFunc() {
	plans := map[string][]headgate.Limit{
		"free": {headgate.FixedWindow(1, 24*time.Hour).Named("quota")},
		"paid": {headgate.FixedWindow(1000, 24*time.Hour).Named("quota")},
	}
	limiter, err := headgate.NewLimiterFunc(headgate.NewMemory(),
		func(ctx context.Context, _ string) ([]headgate.Limit, error) {
			plan, _ := ctx.Value(planKey{}).(string)
			return plans[plan], nil // none for others: they are always allowed
		})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, plan := range []string{"free", "free", "paid"} {
		ctx := context.WithValue(context.Background(), planKey{}, plan)
		d, err := limiter.Allow(ctx, "user:42")
		fmt.Println(plan, d.Allowed(), d.Remaining, err)
	}
	// Output:
	// free true 0 <nil>
	// free false 0 <nil>
	// paid true 998 <nil>
}
