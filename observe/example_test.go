package observe_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/observe"
)

func ExampleTopDenied() {
	top := observe.NewTopDenied(1000)
	store, err := observe.New(headgate.NewMemory(), observe.Observer{Decided: top.Decided})
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := headgate.NewLimiter(store, headgate.SlidingLog(2, time.Hour).Named("api"))
	if err != nil {
		log.Fatal(err)
	}
	for _, key := range []string{"ann", "bob", "bob", "ann", "bob", "bob", "bob", "ann"} {
		if _, err := limiter.Allow(context.Background(), key); err != nil {
			log.Fatal(err)
		}
	}
	for _, d := range top.Top() {
		fmt.Println(d.Limit.Name(), "denied", d.Key, d.Denied, "times")
	}
	// Output:
	// api denied bob 3 times
	// api denied ann 1 times
}
