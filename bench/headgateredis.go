package main

import (
	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/redisstore"
)

// headgateRedis is this project's Redis store.
func headgateRedis() []Entry {
	return []Entry{{Name: headgateName, Open: redisOpener(Terms.bucket)}}
}

// headgateWrapped is the stores around the Redis store, each with the workload that it
// is for. The budgets find them by their names.
func headgateWrapped() []Entry {
	return []Entry{
		{Name: denyCacheName, Open: wrappedOpener(denyCached), Only: "denial"},
		{Name: leaseName, Open: wrappedOpener(leased), Only: "one hot key", ExtraKeys: 1},
	}
}

func denyCached(s headgate.Store) (headgate.Store, error) {
	return denycache.New(s, 0)
}

func leased(s headgate.Store) (headgate.Store, error) {
	return lease.New(s, lease.Options{})
}

// headgateAlgorithms is this project's other algorithms, for their weight in Redis.
func headgateAlgorithms() []Entry {
	stepped := func(t Terms) headgate.Limit { return headgate.SteppedTokenBucket(1, t.Every).Burst(t.Burst) }
	fixed := func(t Terms) headgate.Limit { return headgate.FixedWindow(t.Burst, t.Period()) }
	sliding := func(t Terms) headgate.Limit { return headgate.SlidingWindow(t.Burst, t.Period()) }
	log := func(t Terms) headgate.Limit { return headgate.SlidingLog(t.Burst, t.Period()) }
	return []Entry{
		{Name: headgateName + ", stepped token bucket", Open: redisOpener(stepped)},
		{Name: headgateName + ", fixed window", Open: redisOpener(fixed)},
		{Name: headgateName + ", sliding window", Open: redisOpener(sliding)},
		{Name: headgateName + ", sliding log", Open: redisOpener(log)},
	}
}

// headgateOnRedis is a limiter of this project on its Redis store, with the
// same client as every contender that uses go-redis.
type headgateOnRedis struct {
	headgateLimiter

	client *redis.Client
	store  *redisstore.Store
}

// redisOpener opens a limiter of the limit that the terms describe.
func redisOpener(limit func(Terms) headgate.Limit) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) {
		return openRedis(s, limit, func(store headgate.Store) (headgate.Store, error) { return store, nil })
	}
}

// wrappedOpener opens a limiter whose store is around the Redis store.
func wrappedOpener(wrap func(headgate.Store) (headgate.Store, error)) func(Setup) (Contender, error) {
	return func(s Setup) (Contender, error) { return openRedis(s, Terms.bucket, wrap) }
}

func openRedis(s Setup, limit func(Terms) headgate.Limit, wrap func(headgate.Store) (headgate.Store, error)) (Contender, error) {
	client := newGoRedis(s.Addr)
	store, err := redisstore.New(client, redisstore.Options{})
	if err != nil {
		return nil, err
	}
	wrapped, err := wrap(store)
	if err != nil {
		return nil, err
	}
	l, err := headgate.NewLimiter(wrapped, limit(s.Terms))
	return headgateOnRedis{headgateLimiter{l}, client, store}, err
}

func (h headgateOnRedis) Close() error {
	_ = h.store.Close()
	return h.client.Close()
}
