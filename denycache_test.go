package headgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

func TestDenyCacheIsAStore(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		return newDenyCache(t, headgate.NewMemory(0), headgate.DenyCacheOptions{MaxTrust: time.Hour})
	})
}

func newDenyCache(t testing.TB, s headgate.Store, o headgate.DenyCacheOptions) *headgate.DenyCache {
	t.Helper()
	c, err := headgate.NewDenyCache(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// far is a store that others ask as well, and that is some way off.
type far struct {
	counting
	way    time.Duration
	during func() // what happens while an answer is under way
}

func newFar(way time.Duration) *far {
	return &far{counting: counting{Store: headgate.NewMemory(1000)}, way: way}
}

func (f *far) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	time.Sleep(f.way)
	d, err := f.counting.Take(ctx, r)
	f.back()
	return d, err
}

func (f *far) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	time.Sleep(f.way)
	err := f.counting.TakeAll(ctx, rs, ds)
	f.back()
	return err
}

func (f *far) back() {
	if f.during != nil {
		during := f.during
		f.during = nil
		during()
	}
	time.Sleep(f.way)
}

func everyLimit(n int64, period time.Duration) []headgate.Limit {
	return []headgate.Limit{
		headgate.Per(n, period).Burst(n), headgate.SteppedTokenBucket(n, period).Burst(n), headgate.FixedWindow(n, period),
		headgate.SlidingWindow(n, period), headgate.SlidingLog(n, period),
	}
}

// TestDenyCacheDeniesInTime asks by the clock: the store is asked for the first denial alone. The
// numbers are those of the store a round trip later at most, and nothing is
// denied that the store would grant.
func TestDenyCacheDeniesInTime(t *testing.T) {
	for _, way := range []time.Duration{0, 3500 * time.Nanosecond, 40 * time.Millisecond} {
		for _, l := range everyLimit(3, 2*time.Second) {
			for _, phase := range []time.Duration{0, 300, 500, 900} { // by which the clocks' microseconds begin apart
				synctest.Test(t, func(t *testing.T) { deniesInTime(t, way, phase, l) })
			}
		}
	}
}

func deniesInTime(t *testing.T, way, phase time.Duration, l headgate.Limit) {
	store := newFar(way)
	time.Sleep(phase)
	cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
	r := headgate.Request{Key: "k", Limit: l, Cost: 1}
	for range 3 {
		take(t, cache, r)
		time.Sleep(1100 * time.Nanosecond)
	}
	first := take(t, cache, r)
	if first.Allowed() {
		t.Fatalf("%s: %+v", l, first)
	}
	asked, late := store.asked.Load(), 2*way+3*time.Microsecond // of roundings
	for n := 0; ; n++ {
		want := take(t, store.Store, headgate.Request{Key: "k", Limit: l}) // what the store says now
		got := take(t, cache, r)
		if store.asked.Load() > asked {
			if n < 5 {
				t.Errorf("%s, %s away: asked again after %d denials", l, way, n)
			}
			return
		}
		if got.Allowed() || want.Allowed() || got.Remaining != want.Remaining || got.Limit != l {
			t.Fatalf("%s, %s away: %+v; of the store %+v", l, way, got, want)
		}
		for _, short := range []time.Duration{want.RetryAfter - got.RetryAfter, want.ResetAfter - got.ResetAfter} {
			if short < 0 || short > late {
				t.Fatalf("%s, %s away: %+v; of the store %+v", l, way, got, want)
			}
		}
		time.Sleep(max(min(got.RetryAfter-2*time.Microsecond, 10*time.Millisecond), 100*time.Nanosecond))
	}
}

func take(t *testing.T, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDenyCacheAsksOnce counts what a storm of one cost comes to at the store.
func TestDenyCacheAsksOnce(t *testing.T) {
	every := everyLimit(10, time.Minute)
	for _, c := range []struct {
		limits []headgate.Limit
		taken  int64
		costs  []int64
		asked  int64
	}{
		{every, 10, []int64{1}, 1},
		{every, 10, []int64{5}, 3},                   // nothing is left, so 5 are asked twice, and 1
		{every, 10, []int64{1, 5, 3, 2, 1000000}, 4}, // at most once each; never is never
		{every, 8, []int64{3}, 1},
		{every[:3], 8, []int64{7, 5, 3, 10, 4, 9, 1000000, 8}, 1}, // which the numbers tell
	} {
		for _, l := range c.limits {
			store := &counting{Store: headgate.NewMemory(1000)}
			cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
			at := time.Unix(4e9, 0)
			take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: c.taken, At: at})
			for i := range 100 {
				for _, cost := range c.costs {
					d := take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: cost, At: at.Add(time.Duration(i) * time.Microsecond)})
					if d.Allowed() || d.Remaining != 10-c.taken || (d.RetryAfter == headgate.Never) != (cost > 10) {
						t.Fatalf("%s, cost %d: %+v", l, cost, d)
					}
				}
			}
			stats := cache.Stats()
			if asked := store.asked.Load() - 1; asked > c.asked || stats.Served+stats.Asked != uint64(100*len(c.costs)+1) || stats.Served < uint64(100*len(c.costs))-uint64(asked) {
				t.Errorf("%s, costs %v: asked %d times; want at most %d. %+v", l, c.costs, asked, c.asked, stats)
			}
		}
	}
}

// TestDenyCacheTrust: what another process resets, gives back or allows is noticed after MaxTrust.
func TestDenyCacheTrust(t *testing.T) {
	for _, given := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := headgate.FixedWindow(3, 24*time.Hour)
			store := newFar(0)
			cache := newDenyCache(t, store, headgate.DenyCacheOptions{})
			r := headgate.Request{Key: "k", Limit: l, Cost: 3}
			if given {
				r.At = time.Now().Truncate(time.Microsecond)
			}
			take(t, cache, r)
			take(t, cache, r)
			r.Cost = 1
			take(t, cache, r)
			reset(t, store.Store, r)
			time.Sleep(time.Second - time.Microsecond)
			if take(t, cache, r).Allowed() {
				t.Error("asked before the time is over: the test proves nothing")
			}
			time.Sleep(time.Microsecond)
			if d := take(t, cache, r); !d.Allowed() || d.Remaining != 2 {
				t.Errorf("given %v, after a second: %+v", given, d)
			}
		})
	}
}

// changes are what makes room for a key.
var changes = map[string]func(ctx context.Context, s headgate.Store, key string, l headgate.Limit) error{
	"reset": func(ctx context.Context, s headgate.Store, key string, l headgate.Limit) error {
		return s.Reset(ctx, key, l)
	},
	"refund": func(ctx context.Context, s headgate.Store, key string, l headgate.Limit) error {
		_, err := s.Take(ctx, headgate.Request{Key: key, Limit: l, Cost: -2})
		return err
	},
	"refund together": func(ctx context.Context, s headgate.Store, key string, l headgate.Limit) error {
		rs := []headgate.Request{{Key: key, Limit: l, Cost: -2}, {Key: "other", Limit: l, Cost: 1}}
		return s.TakeAll(ctx, rs, make([]headgate.Decision, 2))
	},
	"taken back": func(ctx context.Context, s headgate.Store, key string, l headgate.Limit) error {
		_, err := s.Take(ctx, headgate.Request{Key: key, Limit: l, Cost: -2, Ticket: 1})
		return err
	},
}

// TestDenyCacheNotices what is given back through it at once, also if an answer from before that
// arrives later: one on its own, or one of several.
func TestDenyCacheNotices(t *testing.T) {
	for name, change := range changes {
		for _, together := range []bool{false, true} {
			for _, underWay := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, together %v, under way %v", name, together, underWay), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { notices(t, change, together, underWay) })
				})
			}
		}
	}
}

func notices(t *testing.T, change func(context.Context, headgate.Store, string, headgate.Limit) error, together, underWay bool) {
	l := headgate.FixedWindow(2, 24*time.Hour)
	store := newFar(time.Millisecond)
	cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
	take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 2, Ticket: 1, Hold: time.Hour})
	rs := []headgate.Request{{Key: "k", Limit: l, Cost: 1}}
	if together {
		rs = append(rs, headgate.Request{Key: "tenant", Limit: l.Named("tenant"), Cost: 1})
	}
	changed := func() {
		if err := change(t.Context(), cache, "k", l); err != nil {
			t.Error(err)
		}
	}
	if underWay {
		store.during = changed
	}
	if takeAll(t, cache, rs)[0].Allowed() {
		t.Fatal("there is nothing to forget")
	}
	if !underWay {
		changed()
	}
	if d := takeAll(t, cache, rs)[0]; !d.Allowed() {
		t.Errorf("denied even so: %+v", d)
	}
}

// TestDenyCacheGrantUnderWay: a denial that was decided before a grant tells less than that, be it
// a grant of one request or of several.
func TestDenyCacheGrantUnderWay(t *testing.T) {
	for _, others := range [][]headgate.Request{nil, {{Key: "other", Limit: headgate.FixedWindow(1, time.Hour), Cost: 1}}} {
		synctest.Test(t, func(t *testing.T) {
			l := headgate.FixedWindow(10, 24*time.Hour)
			store := newFar(time.Millisecond)
			cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
			take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 4})
			store.during = func() { takeAll(t, cache, append(others, headgate.Request{Key: "k", Limit: l, Cost: 5})) }
			for i, want := range []int64{6, 1, 1} {
				if d := take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 8}); d.Allowed() || d.Remaining != want {
					t.Errorf("%d others, denial %d: %+v; want %d remaining", len(others), i, d, want)
				}
			}
		})
	}
}

var errLost = errors.New("the answer was lost")

// lossy loses answers while it is set to.
type lossy struct {
	headgate.Store
	lost bool
}

func (s *lossy) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	d, err := s.Store.Take(ctx, r)
	if s.lost {
		return headgate.Decision{}, errLost
	}
	return d, err
}

// TestDenyCacheErrors are those of the store. What may have been charged is asked for again;
// what is known is denied even so.
func TestDenyCacheErrors(t *testing.T) {
	l := headgate.FixedWindow(10, 24*time.Hour)
	store := &lossy{Store: headgate.NewMemory(1000)}
	cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
	r := headgate.Request{Key: "k", Limit: l, Cost: 8, At: time.Unix(4e9, 0)}
	take(t, cache, r)
	take(t, cache, r)
	store.lost = true
	if d := take(t, cache, r); d.Allowed() || d.Remaining != 2 {
		t.Errorf("what is known: %+v", d)
	}
	r.Cost = 1
	if d, err := cache.Take(t.Context(), r); !errors.Is(err, errLost) {
		t.Errorf("%+v, %v; want the error of the store", d, err)
	}
	store.lost, r.Cost = false, 8
	if d := take(t, cache, r); d.Remaining != 1 {
		t.Errorf("after a lost answer: %+v; want the 1 that the store has", d)
	}
}

// TestDenyCachePassesThrough what it cannot know: none is answered from memory.
func TestDenyCachePassesThrough(t *testing.T) {
	l := headgate.FixedWindow(1, 24*time.Hour)
	for _, r := range []headgate.Request{
		{Cost: 0}, {Cost: 1, MaxWait: time.Second}, {Cost: 1, Ticket: 7}, {Cost: 0, Ticket: 7}, {Cost: 1, Key: strings.Repeat("k", 2000)},
	} {
		store := &counting{Store: headgate.NewMemory(1000)}
		cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
		r.Limit, r.At = l, time.Unix(4e9, 0)
		plain := headgate.Request{Key: r.Key, Limit: l, Cost: 1, At: r.At}
		take(t, cache, plain)
		take(t, cache, plain)
		for i := range int64(3) {
			before := store.asked.Load()
			take(t, cache, r)
			takeAll(t, cache, []headgate.Request{r, {Key: fmt.Sprint(i), Limit: l, Cost: 1}})
			if asked := store.asked.Load() - before; asked != 2 {
				t.Errorf("%+v: asked %d times; want 2", r, asked)
			}
		}
	}
}

// TestDenyCacheConcurrently lets many callers at a few keys: never over, and whoever resets a key of
// his own finds it so.
func TestDenyCacheConcurrently(t *testing.T) {
	l := headgate.FixedWindow(20, 24*time.Hour)
	cache := newDenyCache(t, headgate.NewMemory(1000), headgate.DenyCacheOptions{Keys: 8, MaxTrust: time.Hour})
	at := time.Unix(4e9, 0)
	var mu sync.Mutex
	granted := map[string]int64{}
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			own := headgate.Request{Key: fmt.Sprint("own ", caller), Limit: l, Cost: 20, At: at}
			for i := range 300 {
				r := headgate.Request{Key: fmt.Sprint(i % 5), Limit: l, Cost: 1 + int64(i%3), At: at}
				if d := take(t, cache, r); d.Allowed() {
					mu.Lock()
					granted[r.Key] += r.Cost
					mu.Unlock()
				}
				if d := take(t, cache, own); d.Allowed() != (i%3 == 0) {
					t.Errorf("caller %d, turn %d: %+v", caller, i, d)
				}
				if i%3 == 2 {
					reset(t, cache, own)
				}
			}
		})
	}
	wg.Wait()
	for key, n := range granted {
		if n != 20 {
			t.Errorf("key %s: %d granted; want 20", key, n)
		}
	}
}

// TestDenyCacheLookForgetsNothing, nor does one of several.
func TestDenyCacheLookForgetsNothing(t *testing.T) {
	store := &counting{Store: headgate.NewMemory(1000)}
	cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
	r := headgate.Request{Key: "k", Limit: headgate.FixedWindow(1, 24*time.Hour), Cost: 1, At: time.Unix(4e9, 0)}
	take(t, cache, r)
	take(t, cache, r)
	look, other := r, r
	look.Cost, other.Key, other.Cost = 0, "other", 0
	take(t, cache, look)
	takeAll(t, cache, []headgate.Request{look, other})
	before := store.asked.Load()
	if take(t, cache, r); store.asked.Load() != before {
		t.Error("the store was asked again")
	}
}

// TestDenyCacheBadInput gets the same errors as from a store, whatever is known.
func TestDenyCacheBadInput(t *testing.T) {
	cache := newDenyCache(t, headgate.NewMemory(1000), headgate.DenyCacheOptions{MaxTrust: time.Hour})
	r := headgate.Request{Key: "k", Limit: headgate.FixedWindow(1, 24*time.Hour), Cost: 1, At: time.Unix(4e9, 0)}
	take(t, cache, r)
	take(t, cache, r)
	for _, c := range []struct {
		rs        []headgate.Request
		decisions int
	}{{[]headgate.Request{r, r}, 2}, {[]headgate.Request{r}, 0}, {[]headgate.Request{r}, 2}} {
		err := cache.TakeAll(t.Context(), c.rs, make([]headgate.Decision, c.decisions))
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
			t.Errorf("%d requests and %d decisions: %v; want an InvalidError", len(c.rs), c.decisions, err)
		}
	}
}

// TestDenyCacheWaysDiffer: answers that took more or less time are of the same state even so.
func TestDenyCacheWaysDiffer(t *testing.T) {
	for _, l := range everyLimit(10, time.Hour) {
		synctest.Test(t, func(t *testing.T) {
			store := newFar(0)
			cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
			take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 10})
			for i := range 20 {
				store.way = time.Duration(30-i%3*10) * time.Millisecond
				if take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 5}).Allowed() {
					t.Fatalf("%s: granted", l)
				}
			}
			if asked := store.asked.Load(); asked > 4 { // 10, 5 twice, and a look
				t.Errorf("%s: asked %d times; want 4", l, asked)
			}
		})
	}
}

// TestDenyCacheClocksApart: what was asked at a given time tells nothing of the store's own, nor the other
// way round.
func TestDenyCacheClocksApart(t *testing.T) {
	l := headgate.PerDay(1)
	for _, at := range [][2]time.Time{{time.Now(), {}}, {{}, time.Now().Add(time.Hour)}} {
		store := &counting{Store: headgate.NewMemory(1000)}
		cache := newDenyCache(t, store, headgate.DenyCacheOptions{MaxTrust: time.Hour})
		for i, c := range []struct {
			at    time.Time
			asked int64
		}{{at[0], 1}, {at[0], 2}, {at[0], 2}, {at[1], 3}, {at[1], 3}, {at[0], 4}} {
			take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 1, At: c.at})
			if asked := store.asked.Load(); asked != c.asked {
				t.Errorf("first at %v, request %d at %v: %d asked; want %d", at[0], i, c.at, asked, c.asked)
			}
		}
	}
}
