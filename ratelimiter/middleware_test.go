package ratelimiter_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/ratelimiter"
	"github.com/redis/go-redis/v9"
)

// hello is a mux behind limiter, with a bucket for each address.
func hello(limiter *ratelimiter.TokenBucket, prefix string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) })
	return ratelimiter.RateLimitMiddleware(limiter, func(r *http.Request) string {
		host, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			host = r.RemoteAddr
		}
		return prefix + "ip:" + host
	})(mux)
}

func get(t *testing.T, h http.Handler, from string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/hello", nil)
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// number reads a header field that must be a whole number.
func number(t *testing.T, w *httptest.ResponseRecorder, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(w.Header().Get(name), 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

func TestMiddleware(t *testing.T) {
	limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 2, RefillRate: 1, RefillInterval: time.Hour})
	h := hello(limiter, key)
	start := client.Time(t.Context()).Val()
	for i, from := range []string{"192.0.2.1:1000", "192.0.2.1:2000"} {
		w := get(t, h, from)
		if w.Code != http.StatusOK || w.Body.String() != "hello" || w.Header().Get("Retry-After") != "" {
			t.Fatalf("request %d: %d %q, Retry-After %q", i, w.Code, w.Body, w.Header().Get("Retry-After"))
		}
		checkHeader(t, w, int64(1-i), start.Add(time.Duration(i+1)*time.Hour))
	}
	w := get(t, h, "192.0.2.1:3000")
	if w.Code != http.StatusTooManyRequests || !strings.HasPrefix(w.Body.String(), "Too many requests: try again in 3") {
		t.Errorf("a third of two: %d %q", w.Code, w.Body)
	}
	checkHeader(t, w, 0, start.Add(2*time.Hour))
	if s := number(t, w, "Retry-After"); s < 3500 || s > 3600 {
		t.Errorf("Retry-After: %d; want about 3600", s)
	}
	if w := get(t, h, "192.0.2.2:1000"); w.Code != http.StatusOK {
		t.Errorf("another address: %d", w.Code)
	}
}

// checkHeader checks the fields that every answer has; the test may have taken a minute.
func checkHeader(t *testing.T, w *httptest.ResponseRecorder, remaining int64, reset time.Time) {
	t.Helper()
	if n := number(t, w, "X-Ratelimit-Limit"); n != 2 {
		t.Errorf("X-RateLimit-Limit: %d; want 2", n)
	}
	if n := number(t, w, "X-Ratelimit-Remaining"); n != remaining {
		t.Errorf("X-RateLimit-Remaining: %d; want %d", n, remaining)
	}
	if late := number(t, w, "X-Ratelimit-Reset") - reset.Unix(); late < 0 || late > 60 {
		t.Errorf("X-RateLimit-Reset: %d s after %s", late, reset)
	}
}

// TestRetryAfter lets the time pass that Retry-After says, by moving the bucket back:
// the next request is allowed, and it was not before.
func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		rate            float64
		interval        time.Duration
		least, most     int64 // of Retry-After
		early           int64 // seconds after which there is no token yet; the rest is for a slow test
		soonest, latest int64 // of X-RateLimit-Reset, in seconds from now
	}{
		{1, time.Hour, 3500, 3600, 3400, 7100, 7201},
		{1.0 / 3, time.Minute, 100, 180, 90, 300, 361},
		{1, 20_000_100 * time.Microsecond, 1, 21, 0, 20, 41},
		{100, 300 * time.Millisecond, 1, 1, 0, 0, 2},
	} {
		limiter, client, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: 2, RefillRate: c.rate, RefillInterval: c.interval})
		h, state := hello(limiter, key), key+"ip:192.0.2.1"
		w := get(t, h, "192.0.2.1:1")
		for w.Code == http.StatusOK {
			w = get(t, h, "192.0.2.1:1")
		}
		now := client.Time(t.Context()).Val().Unix()
		wait := number(t, w, "Retry-After")
		if wait < c.least || wait > c.most {
			t.Errorf("%v each %s: Retry-After %d; want %d to %d", c.rate, c.interval, wait, c.least, c.most)
		}
		if reset := number(t, w, "X-Ratelimit-Reset") - now; reset < c.soonest || reset > c.latest {
			t.Errorf("%v each %s: full in %d s; want %d to %d", c.rate, c.interval, reset, c.soonest, c.latest)
		}
		if c.early > 0 {
			pass(t, client, state, c.early)
			if w := get(t, h, "192.0.2.1:1"); w.Code != http.StatusTooManyRequests {
				t.Errorf("%v each %s: %d after %d s", c.rate, c.interval, w.Code, c.early)
			}
		}
		pass(t, client, state, wait-c.early)
		if w := get(t, h, "192.0.2.1:1"); w.Code != http.StatusOK {
			t.Errorf("%v each %s: %d after %d s, as told", c.rate, c.interval, w.Code, wait)
		}
	}
}

// pass makes a bucket as it will be in some seconds, without requests.
func pass(t *testing.T, client *redis.Client, key string, seconds int64) {
	t.Helper()
	last, err := client.HGet(t.Context(), key, "last_refill").Float64()
	if err != nil {
		t.Fatal(err)
	}
	client.HSet(t.Context(), key, "last_refill", strconv.FormatFloat(last-float64(seconds), 'f', 6, 64))
}

// TestMiddlewareWithoutRedis: the request is not passed on, and the response shows no numbers.
func TestMiddlewareWithoutRedis(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	server.Stop()
	w := get(t, hello(ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: client}), ""), "192.0.2.1:1")
	if w.Code != http.StatusInternalServerError || w.Header().Get("X-Ratelimit-Limit") != "" || strings.Contains(w.Body.String(), server.Addr) {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
}

// TestOwnHeader is a handler that asks by itself and writes the header fields that it
// wants.
func TestOwnHeader(t *testing.T) {
	const capacity = 1
	limiter, _, key := bucket(t, ratelimiter.TokenBucketConfig{Capacity: capacity, RefillRate: 1, RefillInterval: time.Hour})
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		allowed, remaining, err := limiter.Allow(r.Context(), key)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("X-Ratelimit-Limit", strconv.Itoa(capacity))
		w.Header().Set("X-Ratelimit-Remaining", strconv.FormatFloat(remaining, 'f', 0, 64))
		if !allowed {
			http.Error(w, "later", http.StatusTooManyRequests)
		}
	})
	for _, code := range []int{http.StatusOK, http.StatusTooManyRequests} {
		w := get(t, h, "192.0.2.1:1")
		if w.Code != code || number(t, w, "X-Ratelimit-Limit") != 1 || number(t, w, "X-Ratelimit-Remaining") != 0 {
			t.Errorf("%d %v; want %d", w.Code, w.Header(), code)
		}
	}
}
