package envoy

import (
	"hash/maphash"
	"sync/atomic"
	"time"
)

const (
	cacheWays     = 4
	cacheEntry    = 48      // bytes of an entry and of the pointer to it
	minCacheBytes = 1 << 19 // as upstream's cache has it
)

// localCache remembers which counters are over their limit until their window ends. It holds a
// bounded number of entries. Readers take no lock.
type localCache struct {
	seeds [2]maphash.Seed
	slots []atomic.Pointer[denial]
}

// denial is what is known of a counter. Two keyed hashes identify it.
type denial struct {
	hash   [2]uint64
	window int64
	most   int64 // the limit that was passed; a larger one is not
	until  int64 // nanoseconds since 1970
}

func newLocalCache(bytes int) *localCache {
	sets := max(bytes, minCacheBytes) / cacheEntry / cacheWays
	return &localCache{
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		slots: make([]atomic.Pointer[denial], sets*cacheWays),
	}
}

func (c *localCache) hash(key string) [2]uint64 {
	return [2]uint64{maphash.String(c.seeds[0], key), maphash.String(c.seeds[1], key)}
}

func (c *localCache) set(hash [2]uint64) []atomic.Pointer[denial] {
	first := hash[0] % uint64(len(c.slots)/cacheWays) * cacheWays
	return c.slots[first : first+cacheWays]
}

// denies reports whether the counter of key is over a limit of most.
func (c *localCache) denies(key string, window, most int64) bool {
	hash := c.hash(key)
	set := c.set(hash)
	for i := range set {
		d := set[i].Load()
		if d != nil && d.hash == hash && d.window == window {
			return most <= d.most && time.Now().UnixNano() < d.until
		}
	}
	return false
}

// deny remembers that the counter of key is over a limit of most. If there is no room, it
// replaces the denial that ends first.
func (c *localCache) deny(key string, window, most int64, until time.Time) {
	d := &denial{hash: c.hash(key), window: window, most: most, until: until.UnixNano()}
	set := c.set(d.hash)
	place := 0
	for i := range set {
		old, first := set[i].Load(), set[place].Load()
		if old != nil && old.hash == d.hash && old.window == window {
			place = i
			break
		}
		if first != nil && (old == nil || old.until < first.until) {
			place = i
		}
	}
	set[place].Store(d)
}

// forget drops what is known of the counter of key.
func (c *localCache) forget(key string, window int64) {
	hash := c.hash(key)
	set := c.set(hash)
	for i := range set {
		if d := set[i].Load(); d != nil && d.hash == hash && d.window == window {
			set[i].CompareAndSwap(d, nil)
		}
	}
}
