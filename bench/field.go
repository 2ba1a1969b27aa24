package main

// The contenders that the ratios are taken against.
const (
	xTimeRateName = "x/time/rate"
	goLimiterName = "sethvargo/go-limiter"
	redisRateName = "go-redis/redis_rate"
	httprateName  = "go-chi/httprate"
)

// memoryField is every contender that keeps its state in this process.
func memoryField() []Entry {
	return append(headgateMemory(), []Entry{
		{Name: xTimeRateName, Open: openXTimeRate, OneKey: true},
		{Name: "x/time/rate in a map", Open: openXTimeRateMap},
		{Name: goLimiterName, Open: openGoLimiter},
		{Name: "throttled", Open: openThrottledMemory},
		{Name: "ulule/limiter", Open: openUluleMemory},
		{Name: httprateName, Open: openHTTPRate},
	}...)
}

// redisField is every contender that keeps its state in Redis.
func redisField() []Entry {
	return append(headgateRedis(), []Entry{
		{Name: redisRateName, Open: openRedisRate},
		{Name: "documentation's bucket, own script", Open: openDocsBucket},
		{Name: "rueidis, own window script", Open: openRueidisWindow, RedisKeys: 2},
		{Name: "throttled", Open: openThrottledRedis},
		{Name: "ulule/limiter", Open: openUluleRedis},
	}...)
}

// redisLoopField is the contenders of closed loops on Redis.
func redisLoopField() []Entry { return append(redisField(), headgateWrapped()...) }

// absent is said under the table: who is named in the plan of this module and
// not measured.
const absent = "not in the table: mennanov/limiters and rueidislimiter, whose modules the build could not obtain;\n" +
	"\"rueidis, own window script\" runs a fixed window of our own over the rueidis client, and the\n" +
	"documentation's bucket a script of our own that decides as the guide's does."
