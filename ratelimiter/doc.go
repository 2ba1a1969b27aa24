// Package ratelimiter is a token bucket in Redis for programs that follow the Go guide
// to rate limiting in the Redis documentation. It has that guide's names, so that a
// program changes one line, its import, and keeps its code:
//
//	import "github.com/headgate/headgate/ratelimiter"
//
//	limiter := ratelimiter.NewTokenBucket(ratelimiter.TokenBucketConfig{Client: rdb})
//	allowed, remaining, err := limiter.Allow(ctx, "user:123")
//
// A bucket is the same hash at the same key, with the same two fields, so that programs
// which still run the guide's script, in whatever language, and programs that use this
// package share it, in both directions. Give them the same numbers. Tokens arrive in whole
// intervals, counted from the first request. What is different:
//
//	                         with the guide's script    here
//	expiry of a key          none: it stays for ever    set with each grant, see below
//	clock                    each caller's own          the server's
//	rate 0.1, interval 0.1s  adds up errors of floats   counted in whole numbers, exact
//	a denial                 writes the bucket          only mends an expiry
//	an error of Redis        runs the script again      is returned; again only on NOSCRIPT
//	a broken connection      the client may send again  an error; never charged twice
//	many goroutines          a data race                safe
//	client                   *redis.Client              any redis.UniversalClient
//	deadline of a context    not seen while waiting     holds, whatever the client's options
//	numbers out of range     used as they are           one clear error
//	another value at a key   may be written to          an error that names the key
//	middleware               X-RateLimit-Remaining      that, and Limit, Reset, Retry-After; other
//	                                                    words in the bodies of 429 and 500
//
// Where the guide lets requests pass on an error, look at the request's context first: a
// client that hangs up ends it, and would pass uncharged.
//
// For limits of other kinds, several together, or costs other than 1, see package headgate.
//
// # Expiry
//
// A grant lets the key live for twice the time from empty to full, and a minute. A
// key without expiry, as the guide's script makes it, gets one when it is first asked for
// here. That script never extends an expiry. So while a program with this package asks for
// a key at least once in the time from empty to full and 30 seconds, allowed or
// not, the key lasts (but for a clock far ahead, see below); otherwise it may end while others
// still take from it, and begins anew, full: at most one bucket more each time.
//
// # Clocks
//
// The time is the server's. If the server keeps it from scripts (an ACL without TIME), it is
// the caller's. The moment of the latest refill never runs back, so callers whose clocks
// differ win nothing by taking turns. Only programs that run the guide's script bring clocks of
// their own: one that is ahead brings the refill of that lead, once; one that is behind, if it makes
// the key, leaves its lag to be refilled, once. In all, a bucket gives what one gives
// in the time that has passed plus the difference between the clocks, and never more than
// a full bucket for that difference.
//
// Until time has caught up with a clock that was ahead, no tokens arrive for anybody else. One that
// was ahead by more than a key lives is not waited for: others who are refused then leave the
// expiry as it is, and when the key has ended the bucket begins anew.
package ratelimiter
