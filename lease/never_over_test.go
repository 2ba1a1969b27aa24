package lease

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

var leased = []string{
	"2000/s burst 1000", "1000/s", "10/2ms burst 2000 stepped",
	"1000/s fixed-window", "1000/400ms fixed-window",
}

// live lets p ask until end: little, about as much as all are allowed together, or more, in turn;
// and now and then for all that there is at once. One in three processes dies on the way.
func (p *process) live(random *rand.Rand, end time.Time) {
	var wg sync.WaitGroup
	defer wg.Wait()
	death := end
	if random.IntN(3) == 0 {
		death = time.Now().Add(time.Duration(random.Int64N(int64(time.Until(end)))))
	}
	rate := p.limit.Refill()
	if rate == 0 {
		rate = p.limit.Capacity()
	}
	each := p.limit.Period() / time.Duration(rate)
	for time.Now().Before(death) {
		gap := each * time.Duration(1+random.IntN(20))
		for range 50 + random.IntN(300) {
			cost := 1 + random.Int64N(2)
			wg.Go(func() { p.ask(cost) })
			time.Sleep(gap/2 + time.Duration(random.Int64N(int64(gap))))
		}
		if random.IntN(4) == 0 {
			time.Sleep(time.Duration(random.Int64N(int64(100 * time.Millisecond))))
		}
		if random.IntN(6) == 0 {
			for range p.limit.Capacity() {
				wg.Go(func() { p.ask(1) })
			}
		}
	}
	if death != end {
		p.dead.Store(true)
	}
}

// runFleet lets 5 processes live for a while with messages that come late. It returns by how much
// too many tokens were used, how many were, and for how many calls.
func runFleet(t *testing.T, text string, seed uint64) (over, granted, calls int64) {
	synctest.Test(t, func(*testing.T) {
		f := newFleet(text)
		var wg sync.WaitGroup
		var all []*process
		for i := range uint64(5) {
			ways, life := rand.New(rand.NewPCG(seed, i)), rand.New(rand.NewPCG(seed, 100+i))
			p := f.process(Options{PrefetchFraction: 0.25}, weather(ways))
			all = append(all, p)
			wg.Go(func() { p.live(life, time.Now().Add(2*time.Second)) })
		}
		wg.Wait()
		for _, p := range all {
			p.end()
			calls += p.calls.Load()
		}
		over, granted = f.over(), f.granted()
	})
	return over, granted, calls
}

func TestAFleetNeverUsesMoreThanTheLimit(t *testing.T) {
	seeds := uint64(1)
	soak, _ := time.ParseDuration(os.Getenv("HEADGATE_SOAK"))
	for start := time.Now(); seeds == 1 || time.Since(start) < soak; seeds++ {
		for _, text := range leased {
			over, granted, calls := runFleet(t, text, seeds)
			if over != 0 {
				t.Errorf("%s, seed %d: %d tokens over", text, seeds, over)
			}
			t.Logf("%s, seed %d: %d granted in %d calls", text, seeds, granted, calls)
		}
	}
}

// rush lets a process prefetch from a bucket that is nearly full, and use the tokens at the very
// end of their TTL, after another process took all that there was. It returns by how much too many
// were used.
func rush(t *testing.T, text string, bend func([]headgate.Decision)) (over int64) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(text)
		o := Options{PrefetchFraction: 0.25}
		holder, other := f.process(o, instantly), f.process(o, instantly)
		holder.bend = bend
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		for range 3 {
			_, end := holder.heat(t)
			at(end - 10)
			if left := f.remaining(); left > 0 {
				other.ask(left)
			}
			for tokens, _ := holder.held(); tokens > 0; tokens-- {
				holder.ask(1)
			}
			time.Sleep(10 * f.limit.Period())
		}
		over = f.over()
		holder.end()
		other.end()
	})
	return over
}

func TestTokensUsedAtTheEndOfTheirTTLAreNotOver(t *testing.T) {
	for _, text := range leased {
		if over := rush(t, text, nil); over != 0 {
			t.Errorf("%s: %d tokens over", text, over)
		}
	}
}

// A bucket that refilled while tokens were held would grant them twice. The tests above see it.
func TestWithoutMissingTokensABucketIsOver(t *testing.T) {
	for _, text := range leased[:3] {
		allMissing := func(ds []headgate.Decision) { ds[0].Remaining = 0 }
		if over := rush(t, text, allMissing); over == 0 {
			t.Errorf("%s: not over, so the test proves nothing", text)
		}
	}
}

// The bound is exact: a batch as large as the answer allows, used at its last moment, when all that
// can flow in has.
func TestABatchIsAsLargeAsTheBucketAllows(t *testing.T) {
	for _, text := range []string{"1250/s burst 1000", "125/100001us burst 1000 stepped"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(text)
			p := must(New(f.store, Options{PrefetchFraction: 0.25})).plan(f.limit)
			take := func(n int64) headgate.Decision {
				r := headgate.Request{Key: "k", Limit: f.limit, Cost: n}
				return must(f.store.Take(t.Context(), r))
			}
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
			take(250)
			time.Sleep(700 * time.Microsecond) // in which a part of a token flows in
			now := time.Now().UnixMicro()
			d := take(250)
			b := p.batch(250, d, now)
			at(now + p.ttl.Microseconds()) // later than any process would use it
			left := f.remaining()
			if missing := f.limit.Capacity() - left; missing < b.tokens || b.tokens < 245 {
				t.Errorf("%s: %d missing when %d are held", text, missing, b.tokens)
			}
			if b := p.batch(600, headgate.Decision{Limit: f.limit}, now); b.tokens != p.max {
				t.Errorf("%s: a batch of %d; want %d", text, b.tokens, p.max)
			}
		})
	}
}

// quick is a store whose clock runs faster than that of the process, by less than an eighth.
type quick struct{ headgate.Store }

var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func (s quick) now() time.Time {
	return bubbleStart.Add(time.Since(bubbleStart) * 112 / 100).Truncate(time.Microsecond)
}

func (s quick) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	r.At = s.now()
	return s.Store.Take(ctx, r)
}

func (s quick) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].At = s.now()
	}
	return s.Store.TakeAll(ctx, rs, ds)
}

// What is held at the end of a window is not used in the next one, by the store's clock.
func TestTokensOfAWindowEndWithItByAQuickerClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s fixed-window")
		s := quick{f.store}
		p := &process{&wire{fleet: f}, must(New(s, Options{PrefetchFraction: 0.25}))}
		r := headgate.Request{Key: "k", Limit: f.limit, Cost: 1}
		used, held := map[int64]int64{}, 0
		for range 20000 {
			now := s.now()
			window, since := now.Unix(), now.Sub(now.Truncate(time.Second))
			all := headgate.Request{Key: "k", Limit: f.limit, Cost: 1000}
			if window%2 == 1 && used[window] == 0 && must(s.Take(t.Context(), all)).Allowed() {
				used[window] = 1000 // another process takes the whole of a new one
			}
			late := since > time.Duration(700+window*7%100)*time.Millisecond
			if window%2 == 0 && late || window%2 == 1 && since < 20*time.Millisecond {
				if tokens, _ := p.held(); tokens > 0 {
					held++
				}
				if must(p.lease.Take(t.Context(), r)).Allowed() {
					used[window]++
				}
			}
			synctest.Wait()
			time.Sleep(500 * time.Microsecond)
		}
		for window, n := range used {
			if n > 1000 {
				t.Errorf("window %d: %d tokens over", window-bubbleStart.Unix(), n-1000)
			}
		}
		if held < 1000 {
			t.Errorf("tokens were held only %d times", held)
		}
		p.end()
	})
}

// A refund while tokens are held lets them be used on top, and no more: the documentation says so.
func TestARefundIsOverByWhatIsHeldAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s")
		o := Options{PrefetchFraction: 0.25}
		holder, other := f.process(o, instantly), f.process(o, instantly)
		var sum int64
		for range 3 {
			must(f.store.Take(t.Context(), headgate.Request{Key: "k", Limit: f.limit, Cost: 600}))
			tokens, end := holder.heat(t)
			must(f.store.Take(t.Context(), headgate.Request{Key: "k", Limit: f.limit, Cost: -600}))
			at(end - 10)
			other.ask(f.remaining())
			for range tokens {
				holder.ask(1)
			}
			sum += tokens
			time.Sleep(2 * time.Second)
		}
		if over := f.over(); over == 0 || over > sum {
			t.Errorf("%d over, when %d were held; want some, and no more", over, sum)
		}
		holder.end()
		other.end()
	})
}

// A store that loses its data lets the capacity be used once more, and what is held.
func TestALossOfDataIsOverByTheCapacityAndWhatIsHeld(t *testing.T) {
	for _, limit := range []string{"10000/d", "10000/s", "10000/d fixed-window"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(limit)
			holder, other := f.process(Options{}, instantly), f.process(Options{}, instantly)
			held, _ := holder.heat(t)
			other.ask(f.remaining())
			err := f.store.Reset(t.Context(), "k", f.limit)
			other.ask(f.limit.Capacity())
			for range held {
				holder.ask(1)
			}
			bound := f.limit.Capacity() + held
			if over := f.over(); err != nil || over > bound || over < bound-bound/10 {
				t.Errorf("%s: %d over, error %v; want %d, or a tenth less", limit, over, err, bound)
			}
			holder.end()
			other.end()
		})
	}
}
