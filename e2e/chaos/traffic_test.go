package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// way is how callers ask.
type way int

const (
	allows   way = iota // Allow: now or not
	waits               // Wait, which some leave early
	reserves            // Reserve, and then Cancel, or Wait and Commit
)

// load is a part of the traffic.
type load struct {
	name    string
	share   int // of all calls
	keys    int
	maxCost int64
	way     way
	limits  []headgate.Limit
}

// traffic has some keys that all callers want, of each algorithm, two of them hot and with room for
// leases; many keys that few want, with fewer tokens than there are instances; and ledgers, whose
// limits never deny and forget nothing, so that each charge can be counted in the end. Of pairs
// both limits are charged, or none. The same is true of apart, where each limit has a key of its
// own, on another server of a Cluster.
var traffic = []load{
	{"bucket", 7, 1, 3, allows, limits("20/s burst 20")},
	{"stepped", 6, 1, 2, allows, limits("10/500ms stepped")},
	{"fixed", 6, 1, 2, allows, limits("10/500ms fixed-window")},
	{"sliding", 6, 1, 2, allows, limits("10/500ms sliding-window")},
	{"log", 6, 1, 3, allows, limits("10/500ms sliding-log")},
	{"hot", 26, 1, 1, allows, limits("50/s burst 320")},
	{"window", 10, 1, 1, allows, limits("160/5s fixed-window")},
	{"many", 8, 50, 1, allows, limits("1/2s burst 2")},
	{"ledger", 5, 4, 5, allows, limits(ledger)},
	{"pair", 5, 4, 2, allows, limits("5/s burst 10", ledger)},
	{"apart", 5, 4, 2, allows, limits(ledger, "5/s burst 10")},
	{"wait", 4, 1, 2, waits, limits("20/s burst 6")},
	{"waitlog", 3, 1, 2, waits, limits("10/500ms sliding-log")},
	{"reserve", 3, 1, 2, reserves, limits("20/s burst 6")},
}

const ledger = "100000/87600h"

func limits(texts ...string) []headgate.Limit {
	ls := make([]headgate.Limit, len(texts))
	for i, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			panic(err)
		}
		ls[i] = l
	}
	return ls
}

// pick returns a key, and what is charged, by the shares.
func pick(random *rand.Rand) (key string, cost int64) {
	n := random.IntN(100)
	for _, k := range traffic {
		if n -= k.share; n < 0 {
			return fmt.Sprintf("%s-%d", k.name, random.IntN(k.keys)), 1 + random.Int64N(k.maxCost)
		}
	}
	panic("the shares are not 100 in all")
}

// loadOf returns the load that a key belongs to.
func loadOf(key string) load {
	name, _, _ := strings.Cut(key, "-")
	return traffic[slices.IndexFunc(traffic, func(k load) bool { return k.name == name })]
}

// requests returns the requests of a call.
func requests(key string, cost int64) []headgate.Request {
	var rs []headgate.Request
	for i, l := range loadOf(key).limits {
		r := headgate.Request{Key: key, Limit: l, Cost: cost}
		if strings.HasPrefix(key, "apart") {
			r.Key = fmt.Sprintf("%s part %d", key, i)
		}
		rs = append(rs, r)
	}
	return rs
}

func newLimiter(store headgate.Store) *headgate.Limiter {
	l, err := headgate.NewLimiterFunc(store, func(_ context.Context, key string) ([]headgate.Limit, error) {
		return loadOf(key).limits, nil
	})
	if err != nil {
		panic(err)
	}
	return l
}

// wanted returns the keys that are asked for often.
func wanted() []string {
	var keys []string
	for _, k := range traffic {
		for i := range k.keys {
			if k.keys < 50 {
				keys = append(keys, fmt.Sprintf("%s-%d", k.name, i))
			}
		}
	}
	return keys
}

// most is how much l grants at most in any interval of length d.
func most(l headgate.Limit, d time.Duration) int64 {
	micros := d.Microseconds() + 1 // servers count in whole ones
	periods := int64(0)
	if l.Algorithm() != headgate.AlgorithmTokenBucket {
		periods = micros / l.Period().Microseconds()
	}
	switch l.Algorithm() {
	case headgate.AlgorithmTokenBucket:
		return l.Capacity() + micros*l.Refill()/l.Period().Microseconds()
	case headgate.AlgorithmSteppedTokenBucket:
		return l.Capacity() + l.Refill()*(periods+1)
	case headgate.AlgorithmSlidingLog:
		return l.Capacity() * (periods + 1)
	default: // of aligned windows, an interval touches this many
		return l.Capacity() * (periods + 2)
	}
}
