package ratelimiter_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/ratelimiter"
	"github.com/redis/go-redis/v9"
)

// How do I limit each user to bursts of 3, and one request a minute after that?
func Example() {
	ctx := context.Background()
	server, err := redistest.Run(ctx) // a Redis for this example; yours is at localhost:6379
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()

	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{
		Client:         rdb,
		Capacity:       3,
		RefillRate:     1,
		RefillInterval: time.Minute,
	})
	for range 4 {
		allowed, remaining, err := limiter.Allow(ctx, "user:123")
		switch {
		case err != nil:
			fmt.Println("the store is unavailable:", err)
		case allowed:
			fmt.Printf("welcome, %.0f left\n", remaining)
		default:
			fmt.Println("come back later")
		}
	}
	// Output:
	// welcome, 2 left
	// welcome, 1 left
	// welcome, 0 left
	// come back later
}

// How do I limit each address that comes to a web server?
func ExampleRateLimitMiddleware() {
	ctx := context.Background()
	server, err := redistest.Run(ctx) // a Redis for this example; yours is at localhost:6379
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Stop()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()

	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: rdb, Capacity: 1, RefillInterval: time.Hour})
	handler := ratelimiter.RateLimitMiddleware(limiter, func(r *http.Request) string {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		return "ip:" + host
	})(mux)

	for range 2 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
		fmt.Println(w.Code, "with", w.Header().Get("X-Ratelimit-Remaining"), "left")
	}
	// Output:
	// 200 with 0 left
	// 429 with 0 left
}
