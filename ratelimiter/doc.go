// Package ratelimiter is a token bucket in Redis for programs that follow the Go guide
// to rate limiting in the Redis documentation. It has that guide's names, so that a
// program changes one line, its import, and keeps its code:
//
//	import "github.com/headgate/headgate/ratelimiter"
//
//	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: rdb})
//	allowed, remaining, err := limiter.Allow(ctx, "user:123")
//
// A bucket is the same hash at the same key, with the same two fields. So programs that still run
// the guide's script, in any language, and programs that use this package can share a bucket. Give
// them the same numbers. Tokens arrive in whole intervals, counted from the first request. The
// differences:
//
//	                         with the guide's script    here
//	expiry of a key          none: it stays for ever    set with each grant, see below
//	clock                    each caller's own          the server's
//	rate 0.1, interval 0.1s  adds up errors of floats   counted in whole numbers, exact
//	a denial                 writes the bucket          only repairs a missing expiry
//	an error of Redis        runs the script again      is returned; again only on NOSCRIPT
//	a broken connection      the client may send again  an error; never charged twice
//	many goroutines          a data race                safe
//	client                   *redis.Client              any redis.UniversalClient
//	deadline of a context    ignored while waiting      kept, whatever the client's options
//	numbers out of range     used as they are           one clear error
//	another value at a key   may be written to          an error that names the key
//	middleware               X-RateLimit-Remaining      that, and Limit, Reset, Retry-After; other
//	                                                    words in the bodies of 429 and 500
//
// If you let requests pass on an error, as the guide does, check the request's context first: a
// client that disconnects ends it, and would pass uncharged.
//
// For other kinds of limits, several limits together, or costs other than 1, see package headgate.
//
// # Expiry
//
// A grant makes the key expire after twice the time from empty to full, plus a minute. A key
// without expiry, which the guide's script makes, gets one at the first request here. That script
// never extends an expiry. So the key stays as long as a program with this package requests it at
// least once in the time from empty to full plus 30 seconds, allowed or denied (for a clock far
// ahead, see below). Otherwise it may expire while other programs still take from it, and starts
// full again: at most one additional bucket each time.
//
// # Clocks
//
// The time is the server's, or the caller's if the server does not let scripts use TIME (by an
// ACL). The time of the last refill never runs back, so callers whose clocks differ gain nothing by
// alternating. Only programs that run the guide's script use their own clocks. A clock that is
// ahead adds, once, the tokens that refill during its lead. A clock that is behind adds, once, the
// tokens that refill during its lag, if it makes the key. In all, a bucket grants what it would
// grant in the time that has passed plus the difference between the clocks, and at most a full
// bucket for that difference.
//
// Until the time reaches a clock that was ahead, no tokens arrive for other callers. If the clock
// was ahead by more than the key's expiry, denied callers do not extend the expiry: the key
// expires, and the bucket starts full again.
package ratelimiter
