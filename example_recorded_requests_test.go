package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I test a limit on requests that were recorded earlier? Pass the time of each.
func ExampleRequest_at() {
	recorded := []struct{ time, key string }{
		{"2024-02-29T23:59:58Z", "10.0.0.1"},
		{"2024-02-29T23:59:59Z", "10.0.0.1"},
		{"2024-02-29T23:59:59Z", "10.0.0.2"},
		{"2024-03-01T00:00:00Z", "10.0.0.1"},
		{"2024-03-01T00:00:03Z", "10.0.0.1"},
	}
	store, limit := headgate.NewMemory(), headgate.Per(1, 5*time.Second).Burst(2)
	for _, r := range recorded {
		at, _ := time.Parse(time.RFC3339, r.time)
		d, _ := store.Take(context.Background(), headgate.Request{
			Key: r.key, Limit: limit, Cost: 1, At: at,
		})
		fmt.Println(r.time, r.key, d.Allowed())
	}
	// Output:
	// 2024-02-29T23:59:58Z 10.0.0.1 true
	// 2024-02-29T23:59:59Z 10.0.0.1 true
	// 2024-02-29T23:59:59Z 10.0.0.2 true
	// 2024-03-01T00:00:00Z 10.0.0.1 false
	// 2024-03-01T00:00:03Z 10.0.0.1 true
}
