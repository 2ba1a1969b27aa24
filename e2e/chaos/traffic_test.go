package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/headgate/headgate"
)

// traffic is what is asked for: some keys that everybody wants, of each algorithm, two of them hot and with
// room for leases, many that few want, with fewer tokens than there are instances, and ledgers, whose limits refuse nobody and forget nothing, so that each
// charge can be counted in the end. Of pairs both limits are charged, or none; and so of
// what is apart, where each limit has a key of its own, on another server of a Cluster.
var traffic = []struct {
	name   string
	share  int // of all calls
	keys   int
	limits []headgate.Limit
}{
	{"bucket", 7, 1, limits("20/s burst 20")},
	{"stepped", 6, 1, limits("10/500ms stepped")},
	{"fixed", 6, 1, limits("10/500ms fixed-window")},
	{"sliding", 6, 1, limits("10/500ms sliding-window")},
	{"log", 6, 1, limits("10/500ms sliding-log")},
	{"hot", 30, 1, limits("50/s burst 320")},
	{"window", 10, 1, limits("160/5s fixed-window")},
	{"many", 8, 50, limits("1/2s burst 2")},
	{"ledger", 7, 4, limits(ledger)},
	{"pair", 7, 4, limits("5/s burst 10", ledger)},
	{"apart", 7, 4, limits(ledger, "5/s burst 10")},
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

// pick gives a key by the shares.
func pick() string {
	n := rand.N(100)
	for _, k := range traffic {
		if n -= k.share; n < 0 {
			return fmt.Sprintf("%s-%d", k.name, rand.N(k.keys))
		}
	}
	panic("the shares are not 100 in all")
}

func limitsOf(key string) []headgate.Limit {
	name, _, _ := strings.Cut(key, "-")
	for _, k := range traffic {
		if k.name == name {
			return k.limits
		}
	}
	return nil
}

// requests are what is asked for under a key.
func requests(key string) []headgate.Request {
	var rs []headgate.Request
	for i, l := range limitsOf(key) {
		r := headgate.Request{Key: key, Limit: l, Cost: 1}
		if strings.HasPrefix(key, "apart") {
			r.Key = fmt.Sprintf("%s part %d", key, i)
		}
		rs = append(rs, r)
	}
	return rs
}

func newLimiter(store headgate.Store) *headgate.Limiter {
	l, err := headgate.NewLimiterFunc(store, func(_ context.Context, key string) ([]headgate.Limit, error) {
		return limitsOf(key), nil
	})
	if err != nil {
		panic(err)
	}
	return l
}

// wanted are the keys that are asked for often.
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
		rate, unit := l.Rate()
		return l.Capacity() + micros*rate/unit
	case headgate.AlgorithmStepped:
		return l.Capacity() + l.Refill()*(periods+1)
	case headgate.AlgorithmSlidingLog:
		return l.Capacity() * (periods + 1)
	default: // of aligned windows, an interval touches this many
		return l.Capacity() * (periods + 2)
	}
}
