package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// TestVersionsAtTheEdges holds the store to Memory while the versions of a limit whose
// numbers reach the edge of what can be counted take turns.
func TestVersionsAtTheEdges(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	sequences := uint64(1000)
	if testing.Short() {
		sequences = 50
	}
	for seed := range sequences {
		random := rand.New(rand.NewPCG(seed, 0))
		m := headgate.NewMemory(64)
		limits := edgeVersions(random, seed)
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for step := range 100 {
			l := limits[random.IntN(len(limits))]
			r := headgate.Request{Key: fmt.Sprint(seed), Limit: l, Cost: edgeCost(random, l), At: at}
			got, want := take(t, s, r), take(t, m, r)
			if got != want {
				t.Errorf("sequence %d, step %d, cost %d:\n got  %+v\n want %+v\nof %v", seed, step, r.Cost, got, want, limits)
				break
			}
			at = at.Add(time.Duration(random.Int64N(1 << (1 + random.IntN(54)))).Truncate(time.Microsecond))
			if random.IntN(10) == 0 {
				at = at.Add(-time.Duration(random.Int64N(int64(time.Hour))))
			}
			if at.Year() > 2200 {
				break
			}
		}
	}
}

// edgeVersions are two to four versions of one limit, with numbers of any magnitude.
func edgeVersions(random *rand.Rand, seed uint64) []headgate.Limit {
	number := func() int64 { return 1 + random.Int64N(1<<(1+random.IntN(52))) }
	periods := []time.Duration{time.Microsecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour}
	var limits []headgate.Limit
	for len(limits) < 2+int(seed/5%3) {
		capacity, refill := number(), number()
		period := time.Duration(1+random.Int64N(1<<(1+random.IntN(43)))) * time.Microsecond
		if random.IntN(2) == 0 {
			period = periods[random.IntN(len(periods))]
		}
		if len(limits) > 0 && random.IntN(3) == 0 { // a change of capacity alone
			refill, period = limits[0].Refill(), limits[0].Period()
		}
		var l headgate.Limit
		switch seed % 5 {
		case 0:
			l = headgate.FixedWindow(capacity, period)
		case 1:
			l = headgate.SlidingWindow(1+capacity%1000, period)
		case 2:
			l = headgate.SteppedTokenBucket(capacity, max(refill, 1), period)
		case 3:
			l = headgate.SlidingLog(1+capacity%100, period)
		default:
			l = headgate.TokenBucket(capacity, max(refill, 1), period)
		}
		if l.Validate() == nil {
			limits = append(limits, l.Named("edge"))
		}
	}
	return limits
}

func edgeCost(random *rand.Rand, l headgate.Limit) int64 {
	switch random.IntN(8) {
	case 0:
		return -1 - random.Int64N(l.Capacity())
	case 1:
		return 0
	case 2, 3:
		return l.Capacity()
	default:
		return 1 + random.Int64N(l.Capacity())
	}
}
