package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
)

func newDenyCache(t *testing.T, s headgate.Store) *headgate.DenyCache {
	t.Helper()
	c, err := headgate.NewDenyCache(s, headgate.DenyCacheOptions{MaxTrust: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var denyLimits = []string{"10/s", "7/3s burst 20", "20/s stepped", "5/2s burst 9 stepped", "10/s fixed-window", "10/s sliding-window", "10/s sliding-log"}

// TestDenyCache puts storms of requests to a cache before Redis and to Memory: the answers
// are the same, and most denials come from the cache.
func TestDenyCache(t *testing.T) {
	client := newClient(t)
	store := newStore(t, client)
	cache, plain := newDenyCache(t, store), headgate.NewMemory(0)
	limittest.Vectors(t, newDenyCache(t, store))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	denied, sent := 0, new(counter)
	client.AddHook(sent)
	for _, text := range denyLimits {
		l := parse(t, text)
		for key := range 6 {
			at := time.Unix(4e9, 0)
			for i := range 150 {
				at = at.Add(time.Duration(random.Int64N(int64(20 * time.Millisecond)))).Truncate(time.Microsecond)
				r := headgate.Request{Key: fmt.Sprint(text, key), Limit: l, Cost: 1 + 2*random.Int64N(2), At: at}
				if i%50 == 49 {
					r.Cost = -2
				}
				got, want := take(t, cache, r), take(t, plain, r)
				if got != want {
					t.Fatalf("seed %d, %s, request %d: %+v:\n got  %+v\n want %+v", seed, text, i, r, got, want)
				}
				if !want.Allowed() {
					denied++
				}
			}
		}
	}
	if served := cache.Stats().Served; served < uint64(denied)*2/3 || sent.sent.Load() > int64(len(denyLimits)*6*150-int(served)+100) { // a look now and then
		t.Errorf("of %d denials %d are served, and %d commands sent", denied, served, sent.sent.Load())
	}
}

// TestDenyCacheLive asks by the clocks, which run as they do: what the cache denies Redis denies, too.
func TestDenyCacheLive(t *testing.T) {
	client := newClient(t)
	for _, text := range []string{"100/s burst 20", "20/200ms stepped", "20/200ms fixed-window", "20/200ms sliding-window", "20/200ms sliding-log"} {
		store := newStore(t, client)
		cache, l := newDenyCache(t, store), parse(t, text)
		r := headgate.Request{Key: text, Limit: l}
		for i := range 600 {
			r.Cost = 1 + int64(i%2)*l.Capacity()/10
			before := cache.Stats().Served
			now := look(t, store, text, l) // what remains before, which only grows until the cache is asked
			d := take(t, cache, r)
			if served := cache.Stats().Served > before; served && now.Remaining >= r.Cost {
				t.Fatalf("%s: %d remained, and the cache denies %d: %+v", text, now.Remaining, r.Cost, d)
			}
		}
		if stats := cache.Stats(); stats.Served == 0 {
			t.Errorf("%s: nothing was served: %+v", text, stats)
		}
	}
}

func look(t *testing.T, s *redisstore.Store, key string, l headgate.Limit) headgate.Decision {
	t.Helper()
	return take(t, s, headgate.Request{Key: key, Limit: l})
}
