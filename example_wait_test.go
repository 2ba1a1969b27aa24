package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
)

// How do I wait until a limit grants, but no longer than a deadline?
func ExampleLimiter_Wait() {
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(), headgate.PerHour(1))
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()

	fmt.Println(limiter.Wait(ctx, "api.example.com"))
	err := limiter.Wait(ctx, "api.example.com") // fails at once: the start time is an hour ahead
	fmt.Println(errors.Is(err, context.DeadlineExceeded))
	// Output:
	// <nil>
	// true
}
