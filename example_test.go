package headgate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// How do I limit each user to 100 requests per minute, in bursts of up to 20?
func Example() {
	limit := headgate.PerMinute(100).Burst(20)
	limiter, err := headgate.NewLimiter(headgate.NewMemory(0), limit)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := limiter.Allow(context.Background(), "user:42")
	if err != nil {
		fmt.Println("the store could not say:", err) // never by Memory with a valid limit
		return
	}
	if !d.Allowed() {
		fmt.Println("come back in", d.RetryAfter)
		return
	}
	fmt.Println("welcome,", d.Remaining, "left")
	// Output: welcome, 19 left
}

// How do I charge expensive requests more, and give back what was not used?
func ExampleLimiter_AllowN() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(0), headgate.FixedWindow(1000, 24*time.Hour))

	d, _ := limiter.AllowN(ctx, "user:42", 600)
	fmt.Println("600 tokens:", d.Allowed(), d.Remaining)
	d, _ = limiter.AllowN(ctx, "user:42", 600)
	fmt.Println("600 more:", d.Allowed(), d.Remaining)
	d, _ = limiter.Refund(ctx, "user:42", 250)
	fmt.Println("250 were not used:", d.Remaining)
	d, _ = limiter.AllowN(ctx, "user:42", 1001)
	fmt.Println("more than a day holds:", d.Allowed(), d.RetryAfter == headgate.Never)
	// Output:
	// 600 tokens: true 400
	// 600 more: false 400
	// 250 were not used: 650
	// more than a day holds: false true
}

// How do I show what is left, without charging for it?
func ExampleLimiter_Peek() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(0), headgate.SlidingLog(3, time.Hour))
	_, _ = limiter.Allow(ctx, "user:42")
	for range 2 {
		d, _ := limiter.Peek(ctx, "user:42")
		fmt.Printf("%d of %d left\n", d.Remaining, d.Limit.Capacity())
	}
	// Output:
	// 2 of 3 left
	// 2 of 3 left
}

// How do I apply several limits at once, such as a burst and a daily quota?
func ExampleNewLimiter_severalLimits() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(0),
		headgate.PerHour(1).Burst(3).Named("burst"),
		headgate.FixedWindow(1000, 24*time.Hour).Named("quota"),
	)
	for range 4 {
		d, _ := limiter.Allow(ctx, "user:42")
		fmt.Println(d.Allowed(), d.Limit.Name(), d.Remaining)
	}
	// Output:
	// true burst 2
	// true burst 1
	// true burst 0
	// false burst 0
}

// How do I give each plan limits of its own?
func ExampleNewLimiterFunc() {
	ctx := context.Background()
	plans := map[string][]headgate.Limit{
		"free": {headgate.FixedWindow(1, 24*time.Hour).Named("quota")},
		"paid": {headgate.FixedWindow(1000, 24*time.Hour).Named("quota")},
	}
	limiter, err := headgate.NewLimiterFunc(headgate.NewMemory(0), func(_ context.Context, key string) ([]headgate.Limit, error) {
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

// How do I change a limit while the program runs?
func ExampleLimiter_SetLimits() {
	ctx := context.Background()
	limiter, _ := headgate.NewLimiter(headgate.NewMemory(0), headgate.SlidingLog(10, time.Hour).Named("api"))
	d, _ := limiter.AllowN(ctx, "user:42", 8)
	fmt.Println(d.Remaining, "of", d.Limit.Capacity())

	// The name is the same, so what has been consumed is kept.
	_ = limiter.SetLimits(headgate.SlidingLog(20, time.Hour).Named("api"))
	d, _ = limiter.Peek(ctx, "user:42")
	fmt.Println(d.Remaining, "of", d.Limit.Capacity())
	// Output:
	// 2 of 10
	// 12 of 20
}

// How do I make sure that no hour at all, wherever it begins, sees more than 2?
func ExampleSlidingLog() {
	store, limit := headgate.NewMemory(0), headgate.SlidingLog(2, time.Hour)
	noon := time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC)
	for _, minute := range []int{0, 50, 59, 60, 61, 110} {
		d, _ := store.Take(context.Background(), headgate.Request{
			Key: "user:42", Limit: limit, Cost: 1, At: noon.Add(time.Duration(minute) * time.Minute),
		})
		fmt.Println(minute, d.Allowed(), d.RetryAfter)
	}
	// Output:
	// 0 true 0s
	// 50 true 0s
	// 59 false 1m0s
	// 60 true 0s
	// 61 false 49m0s
	// 110 true 0s
}

// How do I read a limit from a configuration file?
func ExampleParseLimit() {
	for _, text := range []string{"100/m burst 20", "1.5/s", "login=5/15m sliding-log", "10/parsec"} {
		limit, err := headgate.ParseLimit(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(limit, "|", limit.Algorithm(), limit.Capacity(), limit.Period())
	}
	// Output:
	// 100/m burst 20 | token-bucket 20 1m0s
	// 3/2s burst 2 | token-bucket 2 2s
	// login=5/15m sliding-log | sliding-log 5 15m0s
	// headgate: limit "10/parsec": period is "parsec"; want a period such as s, 15m, 1h30m or d (units us, ms, s, m, h, d, w)
}

// A limit is a text in JSON, and in every other encoding that knows of texts.
func ExampleLimit_UnmarshalText() {
	var config struct {
		Login headgate.Limit `json:"login"`
	}
	err := json.Unmarshal([]byte(`{"login": "5/15m sliding-log"}`), &config)
	fmt.Println(config.Login.Capacity(), config.Login.Period(), err)
	// Output: 5 15m0s <nil>
}

// How do I try a limit on requests that were recorded earlier? Pass the time of
// each.
func ExampleRequest_at() {
	recorded := []struct{ time, key string }{
		{"2024-02-29T23:59:58Z", "10.0.0.1"},
		{"2024-02-29T23:59:59Z", "10.0.0.1"},
		{"2024-02-29T23:59:59Z", "10.0.0.2"},
		{"2024-03-01T00:00:00Z", "10.0.0.1"},
		{"2024-03-01T00:00:03Z", "10.0.0.1"},
	}
	store, limit := headgate.NewMemory(0), headgate.Per(1, 5*time.Second).Burst(2)
	for _, r := range recorded {
		at, _ := time.Parse(time.RFC3339, r.time)
		d, _ := store.Take(context.Background(), headgate.Request{Key: r.key, Limit: limit, Cost: 1, At: at})
		fmt.Println(r.time, r.key, d.Allowed())
	}
	// Output:
	// 2024-02-29T23:59:58Z 10.0.0.1 true
	// 2024-02-29T23:59:59Z 10.0.0.1 true
	// 2024-02-29T23:59:59Z 10.0.0.2 true
	// 2024-03-01T00:00:00Z 10.0.0.1 false
	// 2024-03-01T00:00:03Z 10.0.0.1 true
}

// How do I take from several keys at once: all of them, or none?
func ExampleMemory_TakeAll() {
	store := headgate.NewMemory(0)
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
		fmt.Println(name, decisions[0].Allowed(), decisions[1].Allowed(), "team has", decisions[1].Remaining)
	}
	// Output:
	// ann true true team has 2
	// bob true false team has 2
}

// How do I tell the limit that refused for the longest?
func ExampleStrictest() {
	burst, quota := headgate.PerSecond(1).Burst(20), headgate.FixedWindow(1000, 24*time.Hour)
	d := headgate.Strictest([]headgate.Decision{
		{Limit: burst, RetryAfter: time.Second},
		{Limit: quota, RetryAfter: 7 * time.Hour},
	})
	fmt.Println(d.Limit, d.RetryAfter)
	// Output: 1000/d fixed-window 7h0m0s
}
