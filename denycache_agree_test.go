package headgate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// counting counts what a store is asked.
type counting struct {
	headgate.Store
	asked atomic.Int64
}

func (c *counting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	c.asked.Add(1)
	return c.Store.Take(ctx, r)
}

func (c *counting) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	c.asked.Add(1)
	return c.Store.TakeAll(ctx, rs, ds)
}

// storm is a source of requests for a key that is denied most of the time.
type storm struct {
	*rand.Rand
	key    string
	limits [2]headgate.Limit // of one name; mostly the first is asked
	costs  []int64
	micros int64
	wild   bool // with turns, tickets, refunds and clocks that step back
}

func newStorm(a headgate.Algorithm, seed uint64, wild bool) *storm {
	s := &storm{Rand: rand.New(rand.NewPCG(seed, uint64(a))), wild: wild, micros: 4e15 + int64(seed%1e9)}
	s.key = fmt.Sprint(a, seed, wild)
	for i := range s.limits {
		s.limits[i] = s.limit(a).Named("storm")
	}
	if s.IntN(2) == 0 {
		s.limits[1] = s.limits[0]
	}
	for range 1 + s.IntN(4) {
		s.costs = append(s.costs, 1+s.Int64N(s.limits[0].Capacity()))
	}
	if s.IntN(2) == 0 {
		s.costs[0] = 1
	}
	return s
}

func (s *storm) limit(a headgate.Algorithm) headgate.Limit {
	for {
		n, refill := 1+s.Int64N(1<<(1+s.IntN(8))), 1+s.Int64N(1<<(1+s.IntN(8)))
		every := time.Duration(1+s.Int64N(1<<(1+s.IntN(30)))) * time.Microsecond
		if s.IntN(2) == 0 {
			every = time.Second
		}
		l := map[headgate.Algorithm]headgate.Limit{
			headgate.AlgorithmTokenBucket:   headgate.Per(refill, every).Burst(n),
			headgate.AlgorithmStepped:       headgate.SteppedTokenBucket(refill, every).Burst(n),
			headgate.AlgorithmFixedWindow:   headgate.FixedWindow(n, every),
			headgate.AlgorithmSlidingWindow: headgate.SlidingWindow(n, every),
			headgate.AlgorithmSlidingLog:    headgate.SlidingLog(n, every),
		}[a]
		if l.Validate() == nil {
			return l
		}
	}
}

func (s *storm) next() headgate.Request {
	period := s.limits[0].Period().Microseconds()
	s.micros += s.Int64N(period/s.limits[0].Capacity()/int64(1+s.IntN(30)) + 2)
	r := headgate.Request{Key: s.key, Limit: s.limits[0], Cost: s.costs[s.IntN(len(s.costs))], At: time.UnixMicro(s.micros)}
	switch s.IntN(100) {
	case 0:
		r.Limit = s.limits[1]
	case 1:
		r.Cost = r.Limit.Capacity() + 1
	case 2, 3:
		r.Cost = 0
	case 4, 5, 6:
		r.Cost = 1 + s.Int64N(r.Limit.Capacity())
	}
	if s.wild {
		s.disturb(&r)
	}
	return r
}

func (s *storm) disturb(r *headgate.Request) {
	switch s.IntN(60) {
	case 0:
		r.Cost = -1 - s.Int64N(3)
	case 1, 2:
		r.MaxWait = r.Limit.Period()
	case 3:
		r.MaxWait, r.Ticket, r.Hold = r.Limit.Period(), 1+s.Uint64N(5), time.Minute
	case 4:
		r.Ticket, r.Cost = 1+s.Uint64N(5), -s.Int64N(3)
	case 5:
		r.At = r.At.Add(-time.Duration(s.Int64N(int64(r.Limit.Period())))).Truncate(time.Microsecond)
	}
}

// group is r together with others, now and then at a turn.
func (s *storm) group(r headgate.Request) []headgate.Request {
	rs := []headgate.Request{r}
	for i, l := range siblings[:1+s.IntN(len(siblings))] {
		sibling := headgate.Request{Key: s.key, Limit: l, Cost: 1 + s.Int64N(2), At: r.At, MaxWait: r.MaxWait}
		if s.IntN(4) == 0 {
			sibling.Key = "all"
			sibling.At = time.UnixMicro(4e15)
		}
		if i == s.IntN(8) {
			rs = append([]headgate.Request{sibling}, rs...)
		} else {
			rs = append(rs, sibling)
		}
	}
	return rs
}

var siblings = []headgate.Limit{
	headgate.PerSecond(3).Burst(50).Named("bucket"),
	headgate.FixedWindow(100, time.Minute).Named("window"),
	headgate.SteppedTokenBucket(5, time.Second).Burst(20).Named("steps"),
	headgate.SlidingLog(30, time.Second).Named("log"),
}

var algorithms = []headgate.Algorithm{
	headgate.AlgorithmTokenBucket, headgate.AlgorithmStepped, headgate.AlgorithmFixedWindow, headgate.AlgorithmSlidingWindow, headgate.AlgorithmSlidingLog,
}

// TestDenyCacheAgrees puts the same requests to a cache and to a store of its own: every
// field of every answer is the same, if nobody else comes. And most denials come from the cache.
func TestDenyCacheAgrees(t *testing.T) {
	for _, a := range algorithms {
		for _, wild := range []bool{false, true} {
			var denied, asked int64
			base := rand.Uint64() // a failure names its seed
			for i := range uint64(storms()) {
				d, n := agreeInStorm(t, newStorm(a, base+i, wild))
				denied, asked = denied+d, asked+n
			}
			most := denied / 2 // a third, as a rule
			if testing.Short() {
				most = denied * 3 / 4 // of few storms some are odd
			}
			if !wild && asked > most || denied < int64(storms())*100 {
				t.Errorf("%s: of %d denials the store was asked for %d; want at most %d", a, denied, asked, most)
			}
		}
	}
}

func storms() int {
	if testing.Short() {
		return 20
	}
	return 100
}

func agreeInStorm(t *testing.T, s *storm) (denied, asked int64) {
	inner := &counting{Store: headgate.NewMemory(1000)}
	cache, plain := newDenyCache(t, inner, headgate.DenyCacheOptions{Keys: 64, MaxTrust: time.Hour}), headgate.NewMemory(1000)
	together := s.IntN(3) == 0
	for i := range 200 {
		rs := []headgate.Request{s.next()}
		if together && s.IntN(4) > 0 {
			rs = s.group(rs[0])
		}
		if s.wild && s.IntN(100) == 0 {
			reset(t, cache, rs[0])
			reset(t, plain, rs[0])
		}
		before := inner.asked.Load()
		got, want := takeAll(t, cache, rs), takeAll(t, plain, rs)
		for j := range rs {
			if got[j] != want[j] {
				t.Fatalf("%s, request %d: %+v of %d:\n got  %+v\n want %+v", s.key, i, rs[j], len(rs), got[j], want[j])
			}
		}
		if !headgate.Strictest(want).Allowed() {
			denied++
			asked += inner.asked.Load() - before
		}
	}
	return denied, asked
}

func reset(t *testing.T, s headgate.Store, r headgate.Request) {
	t.Helper()
	if err := s.Reset(t.Context(), r.Key, r.Limit); err != nil {
		t.Fatal(err)
	}
}

// takeAll asks for one by Take.
func takeAll(t *testing.T, s headgate.Store, rs []headgate.Request) []headgate.Decision {
	t.Helper()
	ds := make([]headgate.Decision, len(rs))
	var err error
	if len(rs) == 1 {
		ds[0], err = s.Take(t.Context(), rs[0])
	} else {
		err = s.TakeAll(t.Context(), rs, ds)
	}
	if err != nil {
		t.Fatalf("%+v: %v", rs, err)
	}
	return ds
}

// FuzzDenyCache looks for storms in which the cache and the store alone differ.
func FuzzDenyCache(f *testing.F) {
	for i := range uint64(10) {
		f.Add(i, uint8(i), i%2 == 0)
	}
	f.Fuzz(func(t *testing.T, seed uint64, algorithm uint8, wild bool) {
		agreeInStorm(t, newStorm(algorithms[int(algorithm)%len(algorithms)], seed, wild))
	})
}
