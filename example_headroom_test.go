package headgate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/headgate/headgate"
)

// Three classes share one budget. Batch jobs leave half of it to others, interactive callers a
// fifth, and critical ones nothing.
func ExampleRequest_headroom() {
	store, limit := headgate.NewMemory(), headgate.PerMinute(100)
	classes := []struct {
		name     string
		headroom int64
	}{{"batch", 50}, {"interactive", 20}, {"critical", 0}}
	for _, class := range classes {
		granted := 0
		for range 100 {
			d, err := store.Take(context.Background(), headgate.Request{
				Key: "tenant:7", Limit: limit, Cost: 1, Headroom: class.headroom,
			})
			if err != nil {
				log.Fatal(err)
			}
			if d.Allowed() {
				granted++
			}
		}
		fmt.Println(class.name, granted)
	}
	// Output:
	// batch 50
	// interactive 30
	// critical 20
}
