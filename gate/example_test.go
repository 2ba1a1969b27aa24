package gate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/gate"
)

// How do I do something at most twice in any 200 milliseconds?
func ExampleGate() {
	g, err := gate.New(2, 200*time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	for i := range 6 {
		if err := g.Wait(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		earliest := time.Duration(i/2) * 200 * time.Millisecond
		fmt.Println("action", i, "not before", earliest, time.Since(start) >= earliest)
	}
	// Output:
	// action 0 not before 0s true
	// action 1 not before 0s true
	// action 2 not before 200ms true
	// action 3 not before 200ms true
	// action 4 not before 400ms true
	// action 5 not before 400ms true
}

// How do I wait for a limited time? If the start would come later, Wait returns an error at once
// and charges nothing.
func ExampleGate_Wait_deadline() {
	g, _ := gate.New(1, time.Hour)
	_ = g.Wait(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := g.Wait(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), ctx.Err())
	// Output: true <nil>
}

// How do I go on if it is free, and do something else if not?
func ExampleGate_TryWait() {
	g, _ := gate.New(1, time.Hour)
	for _, timeout := range []time.Duration{0, 0, time.Minute} {
		passed, err := g.TryWait(context.Background(), timeout)
		fmt.Println(passed, err)
	}
	// Output:
	// true <nil>
	// false <nil>
	// false <nil>
}

// How do I show when it will be free, without consuming anything?
func ExampleGate_Peek() {
	g, _ := gate.New(1, time.Hour)
	fmt.Println(g.Peek())
	_ = g.Wait(context.Background())
	open, in := g.Peek()
	fmt.Println(open, in.Round(time.Minute))
	// Output:
	// true 0s
	// false 1h0m0s
}

// How do I share a bandwidth of 10 MB a second among downloads?
func ExampleNewReader() {
	g, _ := gate.New(10_000_000, time.Second)
	for _, download := range []string{"one", "two"} {
		r := gate.NewReader(context.Background(), strings.NewReader(download), g)
		text, err := io.ReadAll(r)
		fmt.Println(string(text), err)
	}
	// Output:
	// one <nil>
	// two <nil>
}
