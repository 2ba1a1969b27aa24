package ratelimiter_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/ratelimiter"
	"github.com/redis/go-redis/v9"
)

// TestBadConfig: what cannot be used is one clear error of every call, and never a panic.
func TestBadConfig(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // never asked
	t.Cleanup(func() { _ = client.Close() })
	type config = ratelimiter.TokenBucketConfig
	for _, c := range []struct {
		name, want string
		cfg        config
	}{
		{"no client", "Client is nil; want a go-redis client", config{}},
		{"nil in an interface", "Client is nil", config{Client: (*redis.Client)(nil)}},
		{"nil cluster", "Client is nil", config{Client: (*redis.ClusterClient)(nil)}},
		{"negative capacity", "Capacity is -1; want from 1 to 70368744177664", config{Client: client, Capacity: -1}},
		{"negative rate", "RefillRate is -0.5; want a number of tokens above 0", config{Client: client, RefillRate: -0.5}},
		{"not a number", "RefillRate is NaN; want", config{Client: client, RefillRate: math.NaN()}},
		{"infinite", "RefillRate is +Inf; want", config{Client: client, RefillRate: math.Inf(1)}},
		{"minus infinite", "RefillRate is -Inf; want", config{Client: client, RefillRate: math.Inf(-1)}},
		{"rate past counting", "RefillRate is 5e-324; want a rounder number", config{Client: client, RefillRate: math.SmallestNonzeroFloat64}},
		{"negative interval", "RefillInterval is -1s; want at least 1µs", config{Client: client, RefillInterval: -time.Second}},
		{"under a microsecond", "RefillInterval is 999ns; want at least 1µs", config{Client: client, RefillInterval: 999}},
		{"interval too long", "RefillInterval is 2562047h47m16.854775807s; want at most", config{Client: client, RefillInterval: math.MaxInt64}},
		{"capacity past counting", "Capacity is 9223372036854775807; want", config{Client: client, Capacity: wide(math.MaxInt64)}},
		{"rate too fine for the capacity", "RefillRate is 3.141592653589793; want a rounder number", config{Client: client, Capacity: wide(1 << 40), RefillRate: math.Pi}},
		{"centuries to fill", "RefillInterval is 1s; want at most 64µs, so that the bucket fills", config{Client: client, Capacity: wide(1 << 46)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.cfg.Capacity == tooWide {
				t.Skip("an int has 32 bits")
			}
			limiter := ratelimiter.NewTokenBucket(c.cfg)
			for range 2 {
				allowed, remaining, err := limiter.Allow(t.Context(), "k")
				if allowed || remaining != 0 {
					t.Errorf("%v, %v", allowed, remaining)
				}
				checkInvalid(t, err, c.want)
			}
			checkStatus500(t, limiter)
		})
	}
}

// wide returns n, or tooWide if an int has 32 bits.
func wide(n int64) int {
	if strconv.IntSize == 32 {
		return tooWide
	}
	return int(n)
}

const tooWide = math.MinInt32

// TestNotMade asks limiters that NewTokenBucket did not make.
func TestNotMade(t *testing.T) {
	for _, limiter := range []*ratelimiter.TokenBucket{nil, {}} {
		_, _, err := limiter.Allow(context.Background(), "k")
		checkInvalid(t, err, "TokenBucket is not set up; want one that NewTokenBucket made")
		checkStatus500(t, limiter)
	}
}

func checkInvalid(t *testing.T, err error, want string) {
	t.Helper()
	if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v; want an InvalidError with %q", err, want)
	}
}

func checkStatus500(t *testing.T, limiter *ratelimiter.TokenBucket) {
	t.Helper()
	handler := ratelimiter.RateLimitMiddleware(limiter, func(*http.Request) string { return "k" })(http.NotFoundHandler())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("status %d; want 500", w.Code)
	}
}

// TestGoodConfig: what is at the edge of what can be counted is counted.
func TestGoodConfig(t *testing.T) {
	for _, cfg := range []ratelimiter.TokenBucketConfig{
		{Capacity: wide(1 << 46), RefillRate: 1 << 46},
		{Capacity: wide(1 << 46), RefillInterval: 64 * time.Microsecond},
		{RefillRate: math.MaxFloat64},
		{RefillRate: math.Pi},
		{Capacity: 1000, RefillRate: 1 / math.Pi},
		{RefillRate: 1e-9, RefillInterval: time.Microsecond},
		{Capacity: 1, RefillInterval: 100 * 365 * 24 * time.Hour},
	} {
		if cfg.Capacity == tooWide {
			continue
		}
		limiter, client, key := bucket(t, cfg)
		want := float64(max(cfg.Capacity, 1) - 1)
		if cfg.Capacity == 0 {
			want = 9
		}
		if allowed, remaining := allow(t, limiter, key); !allowed || remaining != want {
			t.Errorf("%+v: %v, %v remaining; want %v", cfg, allowed, remaining, want)
		}
		if left := client.PTTL(t.Context(), key).Val(); left < time.Minute {
			t.Errorf("%+v: lives for %s", cfg, left)
		}
	}
}
