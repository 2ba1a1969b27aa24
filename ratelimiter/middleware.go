package ratelimiter

import (
	"fmt"
	"log"
	"net/http"
	"strconv"
	"time"
)

// RateLimitMiddleware limits requests by the key that keyFn returns. Denied requests get status
// 429 and a line of text. Every response has these header fields:
//
//	X-RateLimit-Limit      the capacity
//	X-RateLimit-Remaining  whole tokens that remain
//	X-RateLimit-Reset      Unix time in seconds, rounded up, when the bucket will be full
//	Retry-After            with status 429: whole seconds, rounded up and at least 1, until a
//	                       token is available if no other request comes first
//
// If Redis is unavailable or the configuration is invalid (which is logged once), the request gets
// status 500 and none of these fields. To let requests pass instead, use package httplimit, or
// [TokenBucket.Allow] in your own handler.
//
// r.RemoteAddr contains the client's port, so that as a key it gives each connection its own
// bucket: remove the port with net.SplitHostPort.
func RateLimitMiddleware(
	limiter *TokenBucket, keyFn func(*http.Request) string,
) func(http.Handler) http.Handler {
	if limiter != nil && limiter.fault != nil {
		log.Print("every request will get status 500: ", limiter.fault)
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, err := limiter.take(r.Context(), keyFn(r))
			if err != nil {
				http.Error(w, "The rate limiter cannot decide at the moment.",
					http.StatusInternalServerError)
				return
			}
			h := w.Header()
			h.Set("X-Ratelimit-Limit", strconv.Itoa(limiter.capacity))
			h.Set("X-Ratelimit-Remaining", strconv.FormatInt(v.remaining, 10))
			h.Set("X-Ratelimit-Reset", strconv.FormatInt(ceilDiv(v.full.UnixMicro(), 1e6), 10))
			if !v.allowed {
				seconds := max(ceilDiv(int64(v.retry), int64(time.Second)), 1)
				h.Set("Retry-After", strconv.FormatInt(seconds, 10))
				http.Error(w, fmt.Sprintf("Too many requests: try again in %d s.", seconds),
					http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
