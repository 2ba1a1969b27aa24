package concurrency_test

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/concurrency"
)

// How do I let at most two exports of each user run at a time?
func ExampleLimiter() {
	ctx := context.Background()
	exports, err := concurrency.New(concurrency.NewMemory(), 2, time.Minute)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, _, _ := exports.Acquire(ctx, "user:42")
	second, d, _ := exports.Acquire(ctx, "user:42")
	fmt.Println("in use:", d.InUse, "of", d.Limit)
	third, d, _ := exports.Acquire(ctx, "user:42")
	fmt.Println("a third:", third != nil, "retry within a minute:", d.RetryAfter <= time.Minute)

	fmt.Println("released:", first.Release(ctx))
	fmt.Println("again:", first.Release(ctx))
	third, err = exports.Wait(ctx, "user:42") // returns at once
	fmt.Println("a third now:", third != nil, err)
	_, _ = second.Release(ctx), third.Release(ctx)
	// Output:
	// in use: 2 of 2
	// a third: false retry within a minute: true
	// released: <nil>
	// again: concurrency: permit already released
	// a third now: true <nil>
}

// How do I hold a permit for as long as the work takes, and stop when it expires?
func ExamplePermit_Keep() {
	ctx := context.Background()
	jobs, _ := concurrency.New(concurrency.NewMemory(), 1, 10*time.Second)
	permit, err := jobs.Wait(ctx, "nightly")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = permit.Release(ctx) }()
	kept, cancel := permit.Keep(ctx) // renews the permit
	defer cancel()
	work := func(ctx context.Context) error { return ctx.Err() }
	fmt.Println("worked:", work(kept), context.Cause(kept))
	// Output: worked: <nil> <nil>
}

// How do I send at most 10 requests a second to an API that counts them as they arrive? Release a
// permit a second after the response: delays of the network then do not matter.
func ExamplePermit_ReleaseAfter() {
	ctx := context.Background()
	const ttl = 30 * time.Second // at least a second and the longest delay of a request
	slots, err := concurrency.New(concurrency.NewMemory(), 10, ttl)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(ctx context.Context) error { return ctx.Err() }
	for range 10 {
		permit, err := slots.Wait(ctx, "api.example.com")
		if err != nil {
			fmt.Println(err)
			return
		}
		if err := call(ctx); err != nil {
			continue // the request may still arrive, so the permit expires
		}
		if err := permit.ReleaseAfter(ctx, time.Second); err != nil {
			fmt.Println(err)
		}
	}
	d, err := slots.Peek(ctx, "api.example.com")
	fmt.Println("another call now:", d.Allowed(), err)
	fmt.Println("in a second:", d.RetryAfter <= time.Second)
	// Output:
	// another call now: false <nil>
	// in a second: true
}
