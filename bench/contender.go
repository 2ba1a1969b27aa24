package main

import (
	"context"
	"io"
	"slices"
	"time"
)

// Contender is one limiter to measure. It limits each key by the Terms it was opened with, and
// many goroutines call Take at once.
type Contender interface {
	Take(ctx context.Context, key string) (allowed bool, err error)
}

// Terms are the limit for each key: a bucket of Burst tokens, full initially, that gets one token
// back each Every. A contender that counts in windows allows Burst in a window of Period. Either
// way the first Burst takes are granted, and in the first Every all others are denied.
type Terms struct {
	Burst int64
	Every time.Duration
}

// Period is the time in which an empty bucket fills up.
func (t Terms) Period() time.Duration { return time.Duration(t.Burst) * t.Every }

// Setup is what a contender is opened with.
type Setup struct {
	Terms

	Keys int    // how many keys there will be, for contenders that reserve room
	Addr string // host:port of Redis, if the contender uses it
}

// Entry is a contender and what its run is checked against.
type Entry struct {
	Name string
	Open func(Setup) (Contender, error)

	OneKey    bool // it has no keys: only workloads of one key run it
	NoLimit   bool // it grants everything: its answers are not checked
	RedisKeys int  // keys in Redis for each limited key; 0 means 1
	ExtraKeys int  // keys in Redis that it may make besides
}

// The contenders that ratios are taken against.
const (
	headgateName  = "headgate"
	clockName     = "monotonic clock"
	xTimeRateName = "x/time/rate"
	goLimiterName = "sethvargo/go-limiter"
	httprateName  = "go-chi/httprate"
	redisRateName = "go-redis/redis_rate"
	ululeName     = "ulule/limiter"
	rueidisName   = "rueidislimiter"
	prototypeName = "prototype"
)

// memoryField is the contenders that keep their state in this process.
func memoryField() []Entry {
	return []Entry{
		{Name: headgateName, Open: openHeadgateMemory},
		{Name: storeName, Open: openMemoryStore},
		{Name: clockName, Open: openClock, OneKey: true, NoLimit: true},
		{Name: xTimeRateName, Open: openXTimeRate, OneKey: true},
		{Name: goLimiterName, Open: openGoLimiter},
	}
}

// httpField is the middlewares. Each limits by client address and sets header fields.
func httpField() []Entry {
	return []Entry{
		{Name: headgateName, Open: middleware(headgateMiddleware)},
		{Name: httprateName, Open: middleware(httprateMiddleware)},
	}
}

// redisField is the contenders that keep their state in Redis.
func redisField() []Entry {
	return []Entry{
		{Name: headgateName, Open: openHeadgateRedis},
		{Name: fixedWindowName, Open: openHeadgateWindow},
		{Name: redisRateName, Open: openRedisRate},
		{Name: autoPipelineName, Open: openRedisRateAutoPipeline},
		{Name: ululeName, Open: openUlule},
		{Name: rueidisName, Open: openRueidisLimiter, RedisKeys: 2},
		{Name: "throttled", Open: openThrottled},
	}
}

// networkField is the contenders over a network. The first two run as a fleet, too.
func networkField() []Entry {
	return []Entry{
		{Name: headgateName, Open: openHeadgateRedis},
		{Name: rueidisName, Open: openRueidisLimiter, RedisKeys: 2},
		{Name: redisRateName, Open: openRedisRate},
	}
}

// denyField is the contenders for keys that are denied, leaseField those for one hot key.
func denyField() []Entry {
	return []Entry{
		{Name: denyCacheName, Open: openDenyCache},
		{Name: headgateName, Open: openHeadgateRedis},
		{Name: redisRateName, Open: openRedisRate},
	}
}

func leaseField() []Entry {
	return []Entry{
		{Name: leaseName, Open: openLease, ExtraKeys: 1},
		{Name: headgateName, Open: openHeadgateRedis},
		{Name: redisRateName, Open: openRedisRate},
	}
}

// redisKeys is how many keys in Redis the entry makes for limited keys.
func (e Entry) redisKeys(limited int) int { return limited * max(e.RedisKeys, 1) }

// closeContender closes c, if it can be closed.
func closeContender(c Contender) error {
	if cl, ok := c.(io.Closer); ok {
		return cl.Close()
	}
	return nil
}

// shuffled is es in an order of its own for each seed, so that no contender always follows the
// same other one. For seed 0 it is the order of the field, which is then that of the tables.
func shuffled(es []Entry, seed int) []Entry {
	es = slices.Clone(es)
	if seed > 0 {
		random(uint64(seed)).Shuffle(len(es), func(i, j int) { es[i], es[j] = es[j], es[i] })
	}
	return es
}
