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
// Most callers want [Limiter.Allow]. Those who know the price only afterwards add
// [Limiter.Refund]; those who only want to show the numbers, [Limiter.Peek].
//
// Those who would rather wait their turn than be refused want a [Gate]: at most so many
// in any window, first come, first served. [Throttle], [ForEach], [NewReader] and
// [NewWriter] put loops, parallel calls and streams behind one.
//
// Every decision is exact. Time is counted in whole microseconds, rates in whole
// fractions, and nothing is rounded but what is shown: no limit ever grants more
// than it says, and a patient caller gets all that it says.
package headgate
