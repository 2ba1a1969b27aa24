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
			l = headgate.SteppedTokenBucket(max(refill, 1), period).Burst(capacity)
		case 3:
			l = headgate.SlidingLog(1+capacity%100, period)
		default:
			l = headgate.Per(max(refill, 1), period).Burst(capacity)
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

// TestExpiryOfVersions changes a limit under a key that has used most of it: what is kept
// lives no longer than either version takes to be as at first sight, and only the first
// refusal under new numbers writes.
func TestExpiryOfVersions(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for i, c := range []struct {
		old, young string
		most       time.Duration // the longer of the two fill times, or windows
		size       int64
	}{
		{"api=10000/m", "api=10/d", 24 * time.Hour, 78},
		{"api=10000/m", "api=10/d burst 1", 144 * time.Minute, 78},
		{"api=10/m", "api=10000/m burst 5", time.Minute, 78},
		{"api=100/m", "api=200/m", time.Minute, 28},
		{"api=1000/m", "api=1000/h burst 1000", time.Hour, 78},
		{"api=10000/m stepped", "api=10/d stepped", 24 * time.Hour, 78},
		{"api=1000/h fixed-window", "api=10/m fixed-window", time.Hour, 49},
		{"api=10/m fixed-window", "api=1000/h fixed-window", time.Hour, 49},
		{"api=1000/h sliding-window", "api=10/m sliding-window", 2 * time.Hour, 63},
		{"api=1000/h sliding-log", "api=10/m sliding-log", time.Hour, 20},
	} {
		old, young := parse(t, c.old), parse(t, c.young)
		r := headgate.Request{Key: fmt.Sprint(i), Limit: old, Cost: old.Capacity() - old.Capacity()/10}
		key := t.Name() + ":{" + r.Key + "}:" + old.ID()
		ttl := func() time.Duration { return client.PTTL(t.Context(), key).Val() }
		if !take(t, s, r).Allowed() {
			t.Fatalf("%s: refused", old)
		}
		r.Limit, r.Cost = young, young.Capacity()
		if take(t, s, r).Allowed() {
			t.Errorf("%s after %s: granted", young, old)
		}
		if left := ttl(); left <= 0 || left > longest(c.most) {
			t.Errorf("%s after %s: lives for %s; want at most %s", young, old, left, longest(c.most))
		}
		if size := client.StrLen(t.Context(), key).Val(); size != c.size {
			t.Errorf("%s after %s: a state of %d bytes; want %d", young, old, size, c.size)
		}
		client.PExpire(t.Context(), key, 100*24*time.Hour)
		take(t, s, r)
		if left := ttl(); left < 99*24*time.Hour {
			t.Errorf("%s after %s: a second refusal changed the expiry to %s", young, old, left)
		}
		r.Cost = 0
		r.Limit = old
		take(t, s, r)
		if left := ttl(); left < 99*24*time.Hour {
			t.Errorf("%s again: a look changed the expiry to %s", old, left)
		}
	}
}

// TestExpiryOfVersionsInTurn bounds the life of what is kept while random versions take
// turns, by twice what the slower takes to fill.
func TestExpiryOfVersionsInTurn(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	texts := []string{"1000/m", "10/m", "7/h burst 3", "1000/h burst 1000", "10/s burst 100", "1/d"}
	for i, kind := range []string{"", " stepped", " fixed-window", " sliding-window"} {
		texts := texts
		if i >= 2 {
			texts = []string{"10/s", "5/7s", "100/m", "9/61s", "1000/h", "3/d"}
		}
		for range 2000 {
			a, b := rand.IntN(len(texts)), rand.IntN(len(texts))
			key := fmt.Sprint(kind, min(a, b), max(a, b))
			l := parse(t, "api="+texts[a]+kind)
			take(t, s, headgate.Request{Key: key, Limit: l, Cost: rand.Int64N(l.Capacity()+1) - l.Capacity()/8})
			var slowest time.Duration
			for _, text := range []string{texts[a], texts[b]} {
				slowest = max(slowest, lifetime(parse(t, text+kind)))
			}
			if left := client.PTTL(t.Context(), t.Name()+":{"+key+"}:"+l.ID()).Val(); left > longest(2*slowest) {
				t.Errorf("%s and %s%s: lives for %s; want at most twice %s", texts[a], texts[b], kind, left, slowest)
			}
		}
	}
}

// lifetime is how long a state under l takes to be as at first sight, at most.
func lifetime(l headgate.Limit) time.Duration {
	switch l.Algorithm() {
	case headgate.AlgorithmFixedWindow:
		return l.Period()
	case headgate.AlgorithmSlidingWindow:
		return 2 * l.Period()
	case headgate.AlgorithmStepped:
		return time.Duration((l.Capacity()+l.Refill()-1)/l.Refill()+1) * l.Period()
	default:
		return time.Duration(float64(l.Period()) * float64(l.Capacity()) / float64(l.Refill()))
	}
}

// TestRetiredVersionsAreForgotten holds the store to what the root package's test of that name
// tells.
func TestRetiredVersionsAreForgotten(t *testing.T) {
	client := newClient(t)
	s := newStore(t, client)
	for i, c := range []struct {
		old, young       string
		cost, step       int64
		each, remembered time.Duration
		beside, alone    int64 // bytes
	}{
		{"api=1000/m", "api=20/s", 1000, 20, time.Second, 8 * time.Minute, 78, 28},
		{"api=1000/m", "api=20/s", 100, 20, time.Second, 48 * time.Second, 78, 28},
		{"api=1000/m", "api=60/h", 30, 1, time.Minute, time.Hour, 78, 28},
		{"api=100/25s fixed-window", "api=1000/m fixed-window", 5, 1, 5 * time.Second, 75 * time.Second, 49, 21},
		{"api=9/m sliding-window", "api=100/10s sliding-window", 5, 1, 5 * time.Second, 16 * time.Minute, 63, 28},
	} {
		old, young := parse(t, c.old), parse(t, c.young)
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		r := headgate.Request{Key: fmt.Sprint(i), Limit: old, Cost: c.cost, At: start}
		key := t.Name() + ":{" + r.Key + "}:" + old.ID()
		take(t, s, r)
		r.Limit, r.Cost = young, c.step
		for after := time.Duration(0); after <= c.remembered; after += c.each {
			r.At = start.Add(after)
			take(t, s, r)
			want := c.beside
			if after == c.remembered {
				want = c.alone
			}
			if size := client.StrLen(t.Context(), key).Val(); size != want {
				t.Fatalf("%s after %s, %s later: a state of %d bytes; want %d", young, old, after, size, want)
			}
		}
	}
}
