package denycache

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// By clocks that run as they do: what the cache denies, Redis denies at that moment.
func TestRedisDeniesWhatTheCacheDenies(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Shared(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	store := must(redisstore.New(client, redisstore.Options{Prefix: t.Name()}))
	counted := &distant{Store: store}
	cache := must(New(counted, 0))
	for _, l := range everyLimit(20, 200*time.Millisecond) {
		served := 0
		for i := range 300 {
			r := headgate.Request{Key: "k", Limit: l, Cost: 1 + int64(i%2)*2}
			// What remains before only grows until the cache asks.
			before := take(t, store, headgate.Request{Key: "k", Limit: l})
			asked := counted.asked.Load()
			d := take(t, cache, r)
			if counted.asked.Load() > asked {
				continue
			}
			if served++; before.Remaining >= r.Cost || d.Allowed() {
				t.Fatalf("%s: %d remained, and a cost of %d got %+v", l, before.Remaining,
					r.Cost, d)
			}
		}
		if served == 0 {
			t.Errorf("%s: nothing was denied from memory", l)
		}
	}
}
