// Package headgate limits rates in one process, or across a fleet that shares a Redis.
//
// A [Limit] says how much a key may use, such as "100 per minute, burst 20". A [Store] keeps what
// each key has used, and decides. [Memory] is a store in this process, and package redisstore is
// one in Redis. A [Limiter] is a store with one or more limits:
//
//	store := headgate.NewMemory() // room for 4 million keys
//	limiter, err := headgate.NewLimiter(store, headgate.PerMinute(100).Burst(20))
//	...
//	d, err := limiter.Allow(ctx, "user:42")
//	if err != nil {
//		return err // the store is unavailable: decide whether the request may go ahead
//	}
//	if !d.Allowed() {
//		// retry after d.RetryAfter
//	}
//
// Most callers want [Limiter.Allow]. [Limiter.Peek] charges nothing, [Limiter.Refund] returns
// tokens that were not needed, and [AllowAll] takes from several keys together.
//
// To wait instead of being denied, use [Limiter.Wait]. If the cost is known only afterwards, use
// [Limiter.Reserve]. Package gate lets at most n callers pass in any window of time, and package
// concurrency limits how many callers work at a time.
//
// Package httplimit limits the requests of net/http servers and clients.
//
// # Stores around stores
//
// Package fallback decides while a store is unavailable, denycache repeats denials, lease
// prefetches tokens of hot keys, and observe reports decisions. Use only those that you need,
// in this order from the outside in:
//
//	observe(lease(denycache(fallback(redisstore))))
//
// # Exactness
//
// Time is counted in whole microseconds, and a rate is a fraction of whole numbers. Only displayed
// values are rounded. No limit grants more than it says. A caller that waits can use the whole
// limit. The exception is a caller that needs a full bucket each time, as with a burst of 1. A full
// bucket gains no tokens, so the tokens of up to a microsecond are lost before each grant.
package headgate
