package ratelimiter

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// RateLimitMiddleware asks limiter for each request, by the key that keyFn gives it, and
// passes on what is allowed. Others get status 429 and a line of text.
//
// Every answer says how the key stands:
//
//	X-RateLimit-Limit      the capacity
//	X-RateLimit-Remaining  whole tokens that remain
//	X-RateLimit-Reset      Unix time in seconds, rounded up, when the bucket will be full
//	Retry-After            with status 429: whole seconds, rounded up, until a token is
//	                       there, at least 1; who obeys is allowed, if nobody came before
//
// If nobody can say, because Redis does not answer or the configuration is at fault, the
// request gets status 500 and none of these. Package httplimit can let requests through
// in that case; here, [TokenBucket.Allow] in a handler of your own can.
//
// A key of r.RemoteAddr as it is holds the client's port, so that each connection gets a
// bucket of its own: cut it off with net.SplitHostPort.
func RateLimitMiddleware(limiter *TokenBucket, keyFn func(*http.Request) string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			v, err := limiter.take(r.Context(), keyFn(r))
			if err != nil {
				http.Error(w, "The rate limiter cannot decide at the moment.", http.StatusInternalServerError)
				return
			}
			h := w.Header()
			h.Set("X-Ratelimit-Limit", strconv.Itoa(limiter.capacity))
			h.Set("X-Ratelimit-Remaining", strconv.FormatInt(v.remaining, 10))
			h.Set("X-Ratelimit-Reset", strconv.FormatInt(ceilDiv(v.full.UnixMicro(), 1e6), 10))
			if !v.allowed {
				seconds := max(ceilDiv(int64(v.retry), int64(time.Second)), 1)
				h.Set("Retry-After", strconv.FormatInt(seconds, 10))
				http.Error(w, fmt.Sprintf("Too many requests: try again in %d s.", seconds), http.StatusTooManyRequests)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}
