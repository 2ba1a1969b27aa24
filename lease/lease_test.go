package lease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/limittest"
)

// Requests with a time go through a lease.
func TestALeaseIsAStore(t *testing.T) {
	limittest.Vectors(t, must(New(headgate.NewMemory(), Options{})))
}

// What is not hot, and what takes no part, costs one call a request.
func TestOtherRequestsTakeOneCallEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s")
		f.store = headgate.NewMemorySize(100000)
		p := f.process(Options{Keys: 64}, steady)
		calls := int64(0)
		take := func(r headgate.Request) {
			calls++
			must(p.lease.Take(t.Context(), r))
		}
		for i := range 3000 { // at most 15 of a key in a TTL
			take(headgate.Request{Key: fmt.Sprint(i % 7), Limit: f.limit, Cost: 1})
		}
		for i := range 3000 {
			take(headgate.Request{Key: fmt.Sprint("once", i), Limit: f.limit, Cost: 1})
		}
		time.Sleep(time.Second)
		for range 100 {
			for _, r := range []headgate.Request{
				{Limit: f.limit}, {Limit: f.limit, Cost: -1},
				{Limit: f.limit, Cost: 1, At: time.Now()}, {Limit: f.limit, Cost: 1, MaxWait: 1},
				{Limit: f.limit, Cost: 1, Force: true}, {Limit: f.limit, Cost: 1, Headroom: 1},
				{Limit: headgate.PerSecond(300), Cost: 1}, // too small
				{Limit: headgate.SlidingWindow(1000, time.Second), Cost: 1},
				{Limit: headgate.SlidingLog(1000, time.Second), Cost: 1},
				{Limit: f.limit, Cost: f.limit.Capacity() + 1},
			} {
				r.Key = "apart"
				take(r)
			}
		}
		rs := []headgate.Request{{Key: "apart", Limit: f.limit, Cost: 1}}
		for range 100 {
			calls++
			if err := p.lease.TakeAll(t.Context(), rs, make([]headgate.Decision, 1)); err != nil {
				t.Fatal(err)
			}
		}
		p.end()
		if got := p.calls.Load(); got != calls {
			t.Errorf("%d calls; want %d", got, calls)
		}
		if n := len(p.lease.hot.rows) * ways; n != 64 {
			t.Errorf("%d keys are counted; want 64", n)
		}
	})
}

// However many tokens are held, the store decides requests that are not plain ones.
func TestHeldTokensAreForPlainRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s")
		p := f.process(Options{}, steady)
		defer p.end()
		p.heat(t)
		for _, r := range []headgate.Request{
			{Headroom: 1}, {Force: true}, {MaxWait: 1}, {At: time.Now()}, {Start: new(time.Time)},
		} {
			calls, prefetches := p.calls.Load(), p.prefetches.Load()
			r.Key, r.Limit, r.Cost = "k", f.limit, 1
			must(p.lease.Take(t.Context(), r))
			synctest.Wait()
			if asked := p.calls.Load() - calls - p.prefetches.Load() + prefetches; asked != 1 {
				t.Errorf("%+v: asked the store %d times; want 1", r, asked)
			}
		}
		if _, ahead := p.ask(1); !ahead {
			t.Error("a plain request asks the store")
		}
	})
}

// The counters of a full row that are hot stay, and of the others the oldest makes room.
func TestAColdKeyMakesRoomForAnother(t *testing.T) {
	var r row
	for i := range int64(ways) {
		r.counter(uint64(i+1), i+1, 10).count(1, i+1, 10)
	}
	for range hotTakes {
		r.find(1).count(1, 5, 10)
	}
	r.counter(9, 6, 10)
	if r.find(1) == nil || r.find(2) != nil || r.find(3) == nil || r.find(9) == nil {
		t.Errorf("%+v", r.counters)
	}
	if r.counter(10, 25, 10); r.find(1) != nil {
		t.Error("the key that was hot is still counted after two spans")
	}
}

func TestBatchesAreSpentInTheirOrderAndBeforeTheirEnds(t *testing.T) {
	for _, c := range []struct {
		what       string
		cost, now  int64
		ok         bool
		first, all int64
	}{
		{"from the first", 3, 50, true, 2, 12},
		{"from both", 7, 50, true, 8, 8},
		{"more than there is", 16, 50, false, 5, 15},
		{"after the end of the first", 8, 100, true, 2, 2},
		{"more than the second has then", 11, 100, false, 10, 10},
		{"after the ends of both", 1, 200, false, 0, 0},
	} {
		h := held{batches: [2]batch{{5, 5, 100}, {10, 10, 200}}}
		ok := h.spend(c.cost, c.now)
		if all := h.left(c.now); ok != c.ok || all != c.all || h.batches[0].left(c.now) != c.first {
			t.Errorf("%s: %v, %d left; %+v", c.what, ok, all, h.batches)
		}
	}
}

// A decision made here has the numbers that the store last said, and the tokens that are held.
func TestADecisionOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("10000/d")
		p := f.process(Options{}, instantly)
		tokens, _ := p.heat(t)
		d, ahead := p.ask(1)
		want := headgate.Decision{
			Limit: f.limit, Remaining: f.remaining() + tokens - 1, ResetAfter: d.ResetAfter,
		}
		if !ahead || d != want || d.ResetAfter <= 0 || d.ResetAfter > time.Hour {
			t.Errorf("%+v; want %+v", d, want)
		}
		tokens, _ = p.held()
		if _, ahead := p.ask(tokens + 1); ahead {
			t.Error("the lease granted more than it held")
		}
		p.end()
	})
}

func TestUnusedTokensAreLostAtTheEndOfTheirTTL(t *testing.T) {
	for _, limit := range []string{"10000/d", "10000/d fixed-window"} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(limit)
			p := f.process(Options{}, instantly)
			tokens, end := p.heat(t)
			if ttl := time.Now().Add(DefaultTTL); end > ttl.UnixMicro() {
				t.Errorf("%s: they are held until %s; want %s at most", limit,
					time.UnixMicro(end), ttl)
			}
			before := f.remaining()
			at(end - 1)
			if left, _ := p.held(); left == 0 || left > tokens {
				t.Errorf("%s: %d of %d are held just before the end", limit, left, tokens)
			}
			at(end)
			if left, _ := p.held(); left != 0 {
				t.Errorf("%s: %d are held at the end", limit, left)
			}
			if after := f.remaining(); after != before {
				t.Errorf("%s: %d remain in the store; want %d", limit, after, before)
			}
			p.end()
		})
	}
}

// While a reset is on its way nothing is used that was prefetched before it, and when it is back,
// nothing that was prefetched meanwhile.
func TestAResetDropsWhatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("10000/s")
		var late atomic.Int64
		p := f.process(Options{}, func() time.Duration { return time.Duration(late.Load()) })
		p.heat(t)
		late.Store(int64(15 * time.Millisecond))
		reset := make(chan error, 1)
		go func() { reset <- p.lease.Reset(t.Context(), "k", f.limit) }()
		synctest.Wait()
		late.Store(0)
		if _, ahead := p.ask(1); ahead {
			t.Error("what was prefetched before the reset is used")
		}
		again := false
		for len(reset) == 0 {
			_, ahead := p.ask(1)
			again = again || ahead
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		if err := <-reset; err != nil || !again {
			t.Fatal(err, again)
		}
		if _, ahead := p.ask(1); ahead {
			t.Error("what was prefetched during the reset is used")
		}
		p.end()
	})
}

// The TTL of tokens is counted from before the store was asked, however late the answer is.
func TestALateAnswerDoesNotProlongTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("10000/d")
		p := f.process(Options{}, func() time.Duration { return 20 * time.Millisecond })
		for range hotTakes + 1 {
			go p.ask(1)
		}
		time.Sleep(40*time.Millisecond + time.Microsecond)
		asked := time.Now()
		time.Sleep(40 * time.Millisecond)
		tokens, end := p.held()
		if left := time.UnixMicro(end).Sub(asked); tokens == 0 || left > DefaultTTL*7/8 {
			t.Errorf("%d tokens are used for %s after they were asked for", tokens, left)
		}
		p.end()
	})
}

// Close waits for the prefetch under way. Then tokens that are held are used, and no more come.
func TestCloseEndsPrefetching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("10000/d")
		p := f.process(Options{}, func() time.Duration { return 20 * time.Millisecond })
		for range hotTakes + 1 {
			go p.ask(1)
		}
		time.Sleep(45 * time.Millisecond) // the key is hot, and a prefetch under way
		start := time.Now()
		p.lease.Close()
		if waited := time.Since(start); waited <= 0 || waited > DefaultTTL {
			t.Errorf("Close waited for %s", waited)
		}
		if _, ahead := p.ask(1); !ahead {
			t.Error("what was prefetched is not used")
		}
		time.Sleep(time.Second)
		calls := p.calls.Load()
		p.late = instantly
		for range 100 {
			if _, ahead := p.ask(1); ahead {
				t.Fatal("prefetched after Close")
			}
			synctest.Wait()
		}
		if n := p.calls.Load() - calls; n != 100 {
			t.Errorf("%d calls for 100 requests after Close", n)
		}
		p.lease.Close()
	})
}

// faulty is a store that fails, or decides by a share of the limit, as the test sets it.
type faulty struct {
	*headgate.Memory
	fails, shares atomic.Bool
	prefetches    atomic.Int64
}

var errFailed = errors.New("failed")

func (s *faulty) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.shares.Load() {
		r.Limit = r.Limit.Share(2)
	}
	return s.Memory.Take(ctx, r)
}

func (s *faulty) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	s.prefetches.Add(1)
	if s.fails.Load() {
		return errFailed
	}
	if s.shares.Load() {
		for i := range rs {
			rs[i].Limit = rs[i].Limit.Share(2)
		}
	}
	return s.Memory.TakeAll(ctx, rs, ds)
}

// A failed prefetch is not repeated at once, and what a share granted is not held.
func TestAPrefetchThatFails(t *testing.T) {
	for what, c := range map[string]struct {
		fault func(s *faulty) *atomic.Bool
		tries int64 // in 5 TTL
	}{
		"fails":      {func(s *faulty) *atomic.Bool { return &s.fails }, 6},
		"of a share": {func(s *faulty) *atomic.Bool { return &s.shares }, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet("10000/d")
			s := &faulty{Memory: f.store}
			p := &process{&wire{fleet: f}, must(New(s, Options{}))}
			p.heat(t)
			c.fault(s).Store(true)
			before := s.prefetches.Load()
			for range 500 {
				p.ask(1)
				synctest.Wait()
				time.Sleep(time.Millisecond)
			}
			if n := s.prefetches.Load() - before; n == 0 || n > c.tries {
				t.Errorf("%s: tried %d times in 5 TTL", what, n)
			}
			if tokens, _ := p.held(); tokens != 0 {
				t.Errorf("%s: %d tokens are held", what, tokens)
			}
			c.fault(s).Store(false)
			p.heat(t)
			p.end()
		})
	}
}

// A lease around a denycache uses what it holds though the store denies.
func TestALeaseGoesAroundADenyCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet("1000/s fixed-window")
		cache := must(denycache.New(f.store, 0))
		p := &process{&wire{fleet: f}, must(New(cache, Options{PrefetchFraction: 0.25}))}
		tokens, _ := p.heat(t)
		r := headgate.Request{Key: "k", Limit: f.limit, Cost: f.remaining()}
		must(f.store.Take(t.Context(), r))
		if d, _ := p.ask(tokens + 1); d.Allowed() {
			t.Fatal("more was granted than there is")
		}
		if d, _ := p.ask(1); !d.Allowed() {
			t.Errorf("denied while %d tokens are held: %+v", tokens, d)
		}
		p.end()
	})
}

// How much is prefetched of a limit, for how long, and how much flows in meanwhile.
func TestThePlanOfALimit(t *testing.T) {
	l := must(New(headgate.NewMemorySize(1), Options{}))
	for text, want := range map[string]plan{
		"1000/s": {max: 50, ttl: 49999 * time.Microsecond,
			inflow: 51},
		"1000/s burst 10000": {max: 500, ttl: 100 * time.Millisecond,
			inflow: 101},
		"1000/s burst 320": {max: 16, ttl: 15999 * time.Microsecond,
			inflow: 17},
		"1000/s burst 319":    {},
		"100000/s burst 1000": {},
		"1000/s fixed-window": {max: 50, ttl: 49999 * time.Microsecond},
		"50/10ms burst 2000 stepped": {max: 100, ttl: 19999 * time.Microsecond,
			inflow: 100},
		"1000/s stepped": {},
		"1/d burst 1000": {max: 50, ttl: 100 * time.Millisecond, inflow: 2},
		"1000000000000/d burst 4000000000": {max: 2e8, ttl: 100 * time.Millisecond,
			inflow: 1157409},
		"1000000000000/ms burst 1000000000000": {},
	} {
		got := l.plan(must(headgate.ParseLimit(text)))
		drain := got.drain
		got.drain = headgate.Limit{}
		if got != want {
			t.Errorf("%s: %+v; want %+v", text, got, want)
		}
		if got.inflow > 0 && (drain.Validate() != nil || drain.Capacity() != got.inflow) {
			t.Errorf("%s: drains by %s", text, drain)
		}
	}
}

func TestWrongInputGetsAnError(t *testing.T) {
	const noStore = "store is nil or a zero value; want a Store, such as NewMemory()"
	const part = "want above 0 and at most 0.25"
	memory := headgate.NewMemorySize(1)
	for _, c := range []struct {
		store headgate.Store
		o     Options
		want  string
	}{
		{nil, Options{}, noStore},
		{(*headgate.Memory)(nil), Options{}, noStore},
		{memory, Options{PrefetchFraction: -0.1}, "prefetch fraction is -0.1; " + part},
		{memory, Options{PrefetchFraction: 0.26}, "prefetch fraction is 0.26; " + part},
		{memory, Options{PrefetchFraction: math.NaN()}, "prefetch fraction is NaN; " + part},
		{memory, Options{TTL: -1}, "TTL is -1ns; want from 1ms to 1m, or 0 for 100ms"},
		{memory, Options{TTL: time.Hour}, "TTL is 1h0m0s; want from 1ms to 1m, or 0 for 100ms"},
		{memory, Options{Keys: -1}, "keys is -1; want from 1 to 16777216, or 0 for 4096"},
		{memory, Options{Keys: 1<<24 + 1},
			"keys is 16777217; want from 1 to 16777216, or 0 for 4096"},
	} {
		if _, err := New(c.store, c.o); fmt.Sprint(err) != "headgate: "+c.want {
			t.Errorf("%+v: %v; want %s", c.o, err, c.want)
		}
	}
	l := must(New(headgate.NewMemorySize(1), Options{}))
	_, err := l.Take(t.Context(), headgate.Request{Cost: 1})
	for _, err := range []error{err, l.Reset(t.Context(), "k", headgate.Limit{})} {
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
			t.Errorf("no limit: %v", err)
		}
	}
}

// rich returns a lease that holds tokens of key k.
func rich() (*Store, headgate.Request) {
	l := must(New(headgate.NewMemorySize(100), Options{TTL: time.Minute}))
	r := headgate.Request{Key: "k", Limit: headgate.PerHour(1e9), Cost: 1}
	row, hash := l.hot.row(r.Key, r.Limit)
	h := newHeld(&r, plan{})
	h.said.Limit = r.Limit
	h.batches[0] = batch{1e15, 1, math.MaxInt64}
	row.counter(hash, 0, 1).held = h
	return l, r
}

func TestADecisionOfALeaseDoesNotAllocate(t *testing.T) {
	l, r := rich()
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { must(l.Take(ctx, r)) }); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
	cold := headgate.Request{Key: "cold", Limit: headgate.PerHour(1), Cost: 1}
	must(l.Take(ctx, cold))
	if n := testing.AllocsPerRun(1000, func() { must(l.Take(ctx, cold)) }); n != 0 {
		t.Errorf("%v allocations a denial", n)
	}
}
