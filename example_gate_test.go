package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// How do I do something at most twice in any 100 milliseconds?
func ExampleGate() {
	gate, err := headgate.NewGate(2, 100*time.Millisecond)
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	for i := range 6 {
		if err := gate.Wait(context.Background()); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("action", i, "in step", int(time.Since(start)/(100*time.Millisecond)))
	}
	// Output:
	// action 0 in step 0
	// action 1 in step 0
	// action 2 in step 1
	// action 3 in step 1
	// action 4 in step 2
	// action 5 in step 2
}

// How do I wait only so long? What cannot be in time is said at once, and costs
// nothing.
func ExampleGate_Wait_deadline() {
	gate, _ := headgate.NewGate(1, time.Hour)
	_ = gate.Wait(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := gate.Wait(ctx)
	fmt.Println(errors.Is(err, context.DeadlineExceeded), ctx.Err())
	// Output: true <nil>
}

// How do I go on if it is free, and do something else if not?
func ExampleGate_TryWait() {
	gate, _ := headgate.NewGate(1, time.Hour)
	fmt.Println(gate.TryWait(0), gate.TryWait(0), gate.TryWait(time.Minute))
	// Output: true false false
}

// How do I show when it will be free, without consuming anything?
func ExampleGate_Peek() {
	gate, _ := headgate.NewGate(1, time.Hour)
	fmt.Println(gate.Peek())
	_ = gate.Wait(context.Background())
	open, in := gate.Peek()
	fmt.Println(open, in.Round(time.Minute))
	// Output:
	// true 0s
	// false 1h0m0s
}

// How do I give each customer a gate, without keeping those who are gone?
func ExampleKeyedGate() {
	gates, _ := headgate.NewKeyedGate(1, time.Hour)
	for _, customer := range []string{"ann", "bob", "ann"} {
		fmt.Println(customer, gates.TryWait(customer, 0))
	}
	// Output:
	// ann true
	// bob true
	// ann false
}

// How do I go through a sequence no faster than 5 each 50 milliseconds?
func ExampleThrottle() {
	gate, _ := headgate.NewGate(5, 50*time.Millisecond)
	words, stopped := headgate.Throttle(context.Background(), gate, strings.FieldsSeq("no sooner said than done"))
	for word := range words {
		fmt.Println(word)
	}
	if err := stopped(); err != nil {
		fmt.Println("not all were said:", err)
	}
	// Output:
	// no
	// sooner
	// said
	// than
	// done
}

// How do I call a service for many things at once, but not too often?
func ExampleForEach() {
	gate, _ := headgate.NewGate(10, 50*time.Millisecond)
	var sum atomic.Int64
	err := headgate.ForEach(context.Background(), gate, 4, slices.Values([]int64{1, 2, 3, 4, 5}), func(_ context.Context, i int64) error {
		sum.Add(i)
		return nil
	})
	fmt.Println(sum.Load(), err)
	// Output: 15 <nil>
}

// How do I share a bandwidth of 10 MB a second among downloads?
func ExampleNewReader() {
	gate, _ := headgate.NewGate(10_000_000, time.Second)
	for _, download := range []string{"one", "two"} {
		r := headgate.NewReader(context.Background(), strings.NewReader(download), gate)
		text, err := io.ReadAll(r)
		fmt.Println(string(text), err)
	}
	// Output:
	// one <nil>
	// two <nil>
}
