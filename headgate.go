// Package headgate decides whether a request may go ahead: in this process, or
// across a fleet that shares a Redis, with the same answers.
//
// A [Limit] is the rule, such as "100 per minute, burst 20". A [Store] keeps what
// each key has consumed and decides: [Memory] here, redisstore in a Redis. A
// [Limiter] is a store and one or more limits, ready to be asked:
//
//	limiter, err := headgate.NewLimiter(headgate.NewMemory(0), headgate.TokenBucket(20, 100, time.Minute))
//	...
//	d, err := limiter.Allow(ctx, "user:42")
//	if err == nil && !d.Allowed() {
//		// come back in d.RetryAfter
//	}
//
// Most callers want [Limiter.Allow]. Those who find that they did not need it add
// [Limiter.Refund]; those who only want to show the numbers, [Limiter.Peek].
//
// Those who would rather wait their turn than be refused ask [Limiter.Wait], under any limit
// and across all who share the store; or [Limiter.Reserve], if they do not wait here, or know the
// price only afterwards. Package gate is for those who must never have more than so many pass in
// any window, at the moments that callers see.
//
// Package concurrency limits how many callers work at a time, however long they take. Several
// keys are asked together by [AllowAll].
//
// Package observe reports what a store decides, how long it takes, and the keys denied most.
//
// Stores around stores go in this order, each of them only if it is wanted:
// Observe(lease(denycache(fallback(redis)))). A fallback further out would take decisions made in
// this process for successes of Redis; a denycache around a lease would deny what the lease holds.
//
// Every decision is exact. Time is counted in whole microseconds, rates in whole
// fractions, and nothing is rounded but what is shown: no limit ever grants more
// than it says, and a patient caller gets all that it says.
package headgate
