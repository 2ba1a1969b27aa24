package headgate_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I take from several keys at once: all of them, or none?
func ExampleMemory_TakeAll() {
	store := headgate.NewMemory()
	user, team := headgate.FixedWindow(5, 24*time.Hour), headgate.FixedWindow(6, 24*time.Hour)
	for _, name := range []string{"ann", "bob"} {
		requests := []headgate.Request{
			{Key: "user:" + name, Limit: user, Cost: 4},
			{Key: "team:red", Limit: team, Cost: 4},
		}
		decisions := make([]headgate.Decision, len(requests))
		if err := store.TakeAll(context.Background(), requests, decisions); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(name, decisions[0].Allowed(), decisions[1].Allowed(), "team has",
			decisions[1].Remaining)
	}
	// Output:
	// ann true true team has 2
	// bob true false team has 2
}
