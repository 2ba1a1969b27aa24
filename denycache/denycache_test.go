package denycache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

func TestADenyCacheIsAStore(t *testing.T) {
	limittest.Vectors(t, must(New(headgate.NewMemory(), 0)))
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// distant is a store that is some way off, and counts what it is asked.
type distant struct {
	headgate.Store
	asked  atomic.Int64
	way    time.Duration
	during func() // what happens once, while an answer is under way
}

func newDistant(way time.Duration) *distant {
	return &distant{Store: headgate.NewMemorySize(1000), way: way}
}

func (d *distant) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	d.asked.Add(1)
	time.Sleep(d.way)
	decision, err := d.Store.Take(ctx, r)
	d.back()
	return decision, err
}

func (d *distant) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	d.asked.Add(1)
	time.Sleep(d.way)
	err := d.Store.TakeAll(ctx, rs, ds)
	d.back()
	return err
}

func (d *distant) back() {
	if during := d.during; during != nil {
		d.during = nil
		during()
	}
	time.Sleep(d.way)
}

func take(t *testing.T, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	return d
}

func takeAll(t *testing.T, s headgate.Store, rs ...headgate.Request) []headgate.Decision {
	t.Helper()
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatalf("%+v: %v", rs, err)
	}
	return ds
}

func everyLimit(n int64, period time.Duration) []headgate.Limit {
	return []headgate.Limit{
		headgate.Per(n, period), headgate.SteppedTokenBucket(n, period),
		headgate.FixedWindow(n, period), headgate.SlidingWindow(n, period),
		headgate.SlidingLog(n, period),
	}
}

// The same request is denied from memory until the store would grant it: never later, and by no
// more than a round trip and the roundings earlier. The clocks' microseconds begin apart.
func TestADenialIsServedUntilTheStoreWouldGrant(t *testing.T) {
	for _, way := range []time.Duration{0, 3500 * time.Nanosecond, 40 * time.Millisecond} {
		for _, l := range everyLimit(3, 2*time.Second) {
			for _, phase := range []time.Duration{0, 300, 500, 900} {
				synctest.Test(t, func(t *testing.T) { servedUntilGranted(t, way, phase, l) })
			}
		}
	}
}

func servedUntilGranted(t *testing.T, way, phase time.Duration, l headgate.Limit) {
	store := newDistant(way)
	time.Sleep(phase)
	cache := must(New(store, 0))
	r := headgate.Request{Key: "k", Limit: l, Cost: 1}
	for range 4 {
		take(t, cache, r)
		time.Sleep(1100 * time.Nanosecond)
	}
	asked, late := store.asked.Load(), 2*way+3*time.Microsecond
	for n := 0; ; n++ {
		want := take(t, store.Store, headgate.Request{Key: "k", Limit: l})
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
		for _, short := range []time.Duration{
			want.RetryAfter - got.RetryAfter, want.ResetAfter - got.ResetAfter,
		} {
			if short < 0 || short > late {
				t.Fatalf("%s, %s away: %+v; of the store %+v", l, way, got, want)
			}
		}
		pause := min(got.RetryAfter-2*time.Microsecond, 10*time.Millisecond)
		time.Sleep(max(pause, 100*time.Nanosecond))
	}
}

// Random requests of several costs, limits and callers, singly and in groups, go to a cache around
// a store and to an equal store alone, at the same times. Refunds and resets go through the cache.
// Every decision is the same, and no remembered number promises more than the store does.
func TestADenyCacheDecidesAsTheStoreAlone(t *testing.T) {
	for _, l := range everyLimit(7, 300*time.Millisecond) {
		for seed := range uint64(20) {
			synctest.Test(t, func(t *testing.T) { decidesAsTheStore(t, l, seed) })
		}
	}
}

func decidesAsTheStore(t *testing.T, l headgate.Limit, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 0))
	inner, plain := newDistant(0), headgate.NewMemorySize(1000)
	cache := must(New(inner, 16))
	denied := int64(0)
	for i := range 400 {
		time.Sleep(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
		r := headgate.Request{Key: fmt.Sprint(random.IntN(2)), Limit: l, Cost: 1 + random.Int64N(3)}
		rs := []headgate.Request{r}
		switch random.IntN(25) {
		case 0:
			rs[0].Cost = -1
		case 1:
			rs[0].Cost = 0
		case 2:
			rs[0].MaxWait = 100 * time.Millisecond
		case 3:
			rs[0].Cost = l.Capacity() + 1
		case 5:
			rs[0].Force = true
		case 4:
			for _, s := range []headgate.Store{cache, plain} {
				if err := s.Reset(t.Context(), r.Key, l); err != nil {
					t.Fatal(err)
				}
			}
		}
		if random.IntN(4) == 0 {
			other := headgate.Request{Key: "all", Limit: headgate.PerSecond(30).Named("all"),
				Cost: 1}
			rs = append(rs, other)
		}
		before := inner.asked.Load()
		got, want := takeAll(t, cache, rs...), takeAll(t, plain, rs...)
		served := inner.asked.Load() == before
		if served {
			denied++
		}
		for j := range rs {
			compare(t, fmt.Sprintf("%s, seed %d, request %d", l, seed, i), got[j], want[j], served)
		}
		if headgate.Granted(rs, got) != headgate.Granted(rs, want) {
			t.Fatalf("%s, seed %d, request %d: %+v; of the store %+v", l, seed, i, got, want)
		}
	}
	if denied < 20 {
		t.Errorf("%s, seed %d: %d denials from memory", l, seed, denied)
	}
}

func compare(t *testing.T, what string, got, want headgate.Decision, served bool) {
	t.Helper()
	if !served {
		if got != want {
			t.Fatalf("%s: %+v; of the store %+v", what, got, want)
		}
		return
	}
	if got.Limit != want.Limit || got.Remaining > want.Remaining ||
		got.RetryAfter > want.RetryAfter || got.ResetAfter > want.ResetAfter {
		t.Fatalf("%s, from memory: %+v; of the store %+v", what, got, want)
	}
}

// One member that is remembered denies the group, and the others say only that they did not.
func TestAGroupIsDeniedByARememberedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newDistant(0)
		cache := must(New(store, 0))
		user := headgate.Request{Key: "user", Limit: headgate.FixedWindow(1, time.Hour), Cost: 1}
		all := headgate.Request{Key: "all", Limit: headgate.PerSecond(10), Cost: 1}
		takeAll(t, cache, user, all)
		first := takeAll(t, cache, user, all)
		before := store.asked.Load()
		time.Sleep(time.Second)
		ds := takeAll(t, cache, user, all)
		single := take(t, cache, user)
		if store.asked.Load() != before || ds[0] != single || single.Allowed() {
			t.Errorf("%+v, and alone %+v", ds, single)
		}
		if ds[1] != (headgate.Decision{Limit: all.Limit}) {
			t.Errorf("the other: %+v", ds[1])
		}
		if d := first[0].RetryAfter - ds[0].RetryAfter; d != time.Second+time.Microsecond {
			t.Errorf("the wait counted down by %s in a second", d)
		}
	})
}

// changes make room for key k.
var changes = map[string]func(t *testing.T, s headgate.Store, l headgate.Limit){
	"reset": func(t *testing.T, s headgate.Store, l headgate.Limit) {
		if err := s.Reset(t.Context(), "k", l); err != nil {
			t.Error(err)
		}
	},
	"refund": func(t *testing.T, s headgate.Store, l headgate.Limit) {
		take(t, s, headgate.Request{Key: "k", Limit: l, Cost: -2})
	},
	"refund in a group": func(t *testing.T, s headgate.Store, l headgate.Limit) {
		other := headgate.Request{Key: "other", Limit: l, Cost: 1}
		takeAll(t, s, headgate.Request{Key: "k", Limit: l, Cost: -2}, other)
	},
}

// Also if a denial from before the change is answered after it.
func TestARefundOrResetThroughTheCacheIsNoticedAtOnce(t *testing.T) {
	for name, change := range changes {
		for _, group := range []bool{false, true} {
			for _, underWay := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					if d := afterChange(t, change, group, underWay); !d.Allowed() {
						t.Errorf("%s, group %v, under way %v: %+v", name, group, underWay, d)
					}
				})
			}
		}
	}
}

// afterChange is the decision on a key that was denied, after or during which change was made.
func afterChange(
	t *testing.T, change func(*testing.T, headgate.Store, headgate.Limit), group, underWay bool,
) headgate.Decision {
	l := headgate.FixedWindow(2, 24*time.Hour)
	store := newDistant(time.Millisecond)
	cache := must(New(store, 0))
	take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 2})
	rs := []headgate.Request{{Key: "k", Limit: l, Cost: 1}}
	if group {
		rs = append(rs, headgate.Request{Key: "k", Limit: l.Named("tenant"), Cost: 1})
	}
	if underWay {
		store.during = func() { change(t, cache, l) }
	}
	if takeAll(t, cache, rs...)[0].Allowed() {
		t.Fatal("there is nothing to forget")
	}
	if !underWay {
		change(t, cache, l)
	}
	return takeAll(t, cache, rs...)[0]
}

func TestWhatIsNotRememberedGoesToTheStore(t *testing.T) {
	l := headgate.FixedWindow(1, 24*time.Hour)
	for _, r := range []headgate.Request{
		{Cost: 0}, {Cost: -1}, {Cost: 2}, {Cost: 1, MaxWait: time.Second},
		{Cost: 1, At: time.Now()}, {Cost: 1, Key: strings.Repeat("k", maxKeyLen+1)},
		{Cost: 1, Force: true},
	} {
		store := newDistant(0)
		cache := must(New(store, 0))
		r.Limit = l
		plain := headgate.Request{Key: r.Key, Limit: l, Cost: 1}
		for i := range int64(3) {
			take(t, cache, plain)
			take(t, cache, plain)
			before := store.asked.Load()
			take(t, cache, r)
			takeAll(t, cache, r, headgate.Request{Key: fmt.Sprint(i), Limit: l, Cost: 1})
			if asked := store.asked.Load() - before; asked != 2 {
				t.Errorf("%+v: asked %d times; want 2", r, asked)
			}
		}
	}
}

// scripted is a store of one answer.
type scripted struct {
	headgate.Store
	d   headgate.Decision
	err error
}

func (s *scripted) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return s.d, s.err
}

func TestAShareOfALimitAndErrorsAreNotRemembered(t *testing.T) {
	l := headgate.PerHour(100)
	failed := errors.New("failed")
	denied := headgate.Decision{Limit: l, RetryAfter: time.Hour, ResetAfter: time.Hour}
	share := denied
	share.Limit = l.Share(2)
	r := headgate.Request{Key: "k", Limit: l, Cost: 1}
	for _, s := range []*scripted{{d: share}, {d: denied, err: failed}} {
		cache := must(New(s, 0))
		_, _ = cache.Take(t.Context(), r)
		s.d, s.err = headgate.Decision{Limit: l, Remaining: 7}, nil
		if d := take(t, cache, r); !d.Allowed() {
			t.Errorf("remembered: %+v", d)
		}
	}
	s := &scripted{d: denied}
	cache := must(New(s, 0))
	take(t, cache, r)
	s.err = failed
	if d := take(t, cache, r); d.Allowed() {
		t.Errorf("while the store fails: %+v", d)
	}
}

func TestManyCallersAreNeverGrantedTooMuch(t *testing.T) {
	l := headgate.FixedWindow(20, 24*time.Hour)
	cache := must(New(headgate.NewMemorySize(1000), 8))
	var granted [5]atomic.Int64
	var wg sync.WaitGroup
	for caller := range 8 {
		wg.Go(func() {
			own := headgate.Request{Key: fmt.Sprint("own ", caller), Limit: l, Cost: 20}
			for i := range 300 {
				r := headgate.Request{Key: fmt.Sprint(i % 5), Limit: l, Cost: 1 + int64(i%3)}
				if take(t, cache, r).Allowed() {
					granted[i%5].Add(r.Cost)
				}
				if d := take(t, cache, own); d.Allowed() != (i%3 == 0) {
					t.Errorf("caller %d, turn %d: %+v", caller, i, d)
				}
				if i%3 == 2 {
					if err := cache.Reset(t.Context(), own.Key, l); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for key := range granted {
		if n := granted[key].Load(); n != 20 {
			t.Errorf("key %d: %d granted; want 20", key, n)
		}
	}
}

// A flood of keys fills the places and no more. The latest denials are remembered.
func TestMemoryIsBounded(t *testing.T) {
	const size = 1000
	store := newDistant(0)
	cache := must(New(store, size))
	l := headgate.FixedWindow(1, 24*time.Hour)
	for i := range 20 * size {
		r := headgate.Request{Key: fmt.Sprint(i), Limit: l, Cost: 1}
		take(t, cache, r)
		take(t, cache, r)
	}
	before := store.asked.Load()
	for i := range 20 * size {
		take(t, cache, headgate.Request{Key: fmt.Sprint(i), Limit: l, Cost: 1})
	}
	// A denial that is not remembered takes the place of another.
	served := int64(20*size) - (store.asked.Load() - before)
	places := 0
	for i := range cache.shards {
		places += len(cache.shards[i].denials)
	}
	if places > size || places < size*9/10 || served > size {
		t.Errorf("%d places, %d served", places, served)
	}
	r := headgate.Request{Key: "last", Limit: l, Cost: 1}
	take(t, cache, r)
	take(t, cache, r)
	before = store.asked.Load()
	if take(t, cache, r); store.asked.Load() != before {
		t.Error("the latest denial is not remembered")
	}
}

func TestWrongInputGetsAnError(t *testing.T) {
	const noStore = "store is nil or a zero value; want a Store, such as NewMemory()"
	_, none := New(nil, 0)
	_, null := New((*headgate.Memory)(nil), 0)
	_, negative := New(headgate.NewMemorySize(1), -1)
	_, large := New(headgate.NewMemorySize(1), maxSize+1)
	for _, c := range []struct {
		err  error
		want string
	}{
		{none, noStore},
		{null, noStore},
		{negative, "size is -1; want at most 16777216, or 0 for 16384"},
		{large, "size is 16777217; want at most 16777216, or 0 for 16384"},
	} {
		if fmt.Sprint(c.err) != "headgate: "+c.want {
			t.Errorf("%v; want %s", c.err, c.want)
		}
	}
	cache := must(New(headgate.NewMemorySize(1000), 0))
	r := headgate.Request{Key: "k", Limit: headgate.FixedWindow(1, 24*time.Hour), Cost: 1}
	for range 2 {
		must(cache.Take(t.Context(), r))
	}
	for _, rs := range [][]headgate.Request{{r, r}, {r}, {r, {Key: "k"}}} {
		err := cache.TakeAll(t.Context(), rs, make([]headgate.Decision, 2))
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok {
			t.Errorf("%d requests, 2 decisions: %v; want an InvalidError", len(rs), err)
		}
	}
}

func TestARememberedDenialDoesNotAllocate(t *testing.T) {
	cache := must(New(headgate.NewMemorySize(1000), 0))
	user := headgate.Request{Key: "user", Limit: headgate.FixedWindow(1, 24*time.Hour), Cost: 1}
	rs := []headgate.Request{user, {Key: "all", Limit: headgate.PerSecond(10), Cost: 1}}
	ds := make([]headgate.Decision, 2)
	take(t, cache, user)
	take(t, cache, user)
	ctx := t.Context()
	one := testing.AllocsPerRun(1000, func() { must(cache.Take(ctx, user)) })
	group := testing.AllocsPerRun(1000, func() {
		if err := cache.TakeAll(ctx, rs, ds); err != nil {
			t.Fatal(err)
		}
	})
	if one != 0 || group != 0 {
		t.Errorf("%v allocations, in a group %v", one, group)
	}
}

// What another process has reset is asked again, and nothing else.
func TestForget(t *testing.T) {
	store := newDistant(0)
	cache := must(New(store, 0))
	hour, day := headgate.FixedWindow(1, time.Hour), headgate.FixedWindow(1, 24*time.Hour)
	for _, l := range []headgate.Limit{hour, hour, day, day} {
		take(t, cache, headgate.Request{Key: "k", Limit: l, Cost: 1})
	}
	for _, l := range []headgate.Limit{hour, day} {
		if err := store.Reset(t.Context(), "k", l); err != nil {
			t.Fatal(err)
		}
	}
	cache.Forget("k", hour)
	cache.Forget("other", day)
	if d := take(t, cache, headgate.Request{Key: "k", Limit: hour, Cost: 1}); !d.Allowed() {
		t.Errorf("the denial was not forgotten: %+v", d)
	}
	if d := take(t, cache, headgate.Request{Key: "k", Limit: day, Cost: 1}); d.Allowed() {
		t.Errorf("another denial was forgotten: %+v", d)
	}
}

// Other numbers of a named limit have the same state: what is refunded, reset or granted under them
// ends a denial, as does the return to the first numbers.
func TestOtherNumbersOfALimit(t *testing.T) {
	first, second := headgate.PerHour(2).Named("api"), headgate.PerSecond(2).Named("api")
	for name, change := range changes {
		synctest.Test(t, func(t *testing.T) {
			cache := must(New(newDistant(0), 0))
			r := headgate.Request{Key: "k", Limit: first, Cost: 1}
			for range 3 {
				take(t, cache, r)
			}
			change(t, cache, second)
			if d := take(t, cache, r); !d.Allowed() {
				t.Errorf("%s under other numbers: %+v", name, d)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		cache := must(New(newDistant(0), 0))
		r := headgate.Request{Key: "k", Limit: first, Cost: 1}
		for range 3 {
			take(t, cache, r)
		}
		time.Sleep(10 * time.Second)
		r.Limit = second
		take(t, cache, r) // 19 tokens have flowed in at this rate
		r.Limit = first
		if d := take(t, cache, r); !d.Allowed() {
			t.Errorf("changed and changed back: %+v", d)
		}
	})
}

// resetting is a store that is asked once more by a cache while it answers.
type resetting struct {
	headgate.Store
	beforeReset, afterTake func()
}

func (s *resetting) Reset(ctx context.Context, key string, l headgate.Limit) error {
	s.beforeReset()
	return s.Store.Reset(ctx, key, l)
}

func (s *resetting) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	d, err := s.Store.Take(ctx, r)
	if s.afterTake != nil {
		s.afterTake()
	}
	return d, err
}

// A denial that the store gives while a reset is on its way is not remembered.
func TestADenialDuringAReset(t *testing.T) {
	store := &resetting{Store: headgate.NewMemorySize(10)}
	cache := must(New(store, 0))
	r := headgate.Request{Key: "k", Limit: headgate.PerHour(1), Cost: 1}
	take(t, cache, r)
	store.beforeReset = func() {
		if take(t, cache, r).Allowed() {
			t.Error("there is nothing to forget")
		}
	}
	changes["reset"](t, cache, r.Limit)
	if d := take(t, cache, r); !d.Allowed() {
		t.Errorf("after the reset: %+v", d)
	}
}

// A denial that was asked for in the microsecond of a reset is not remembered.
func TestADenialInTheMicrosecondOfAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes
		store := &resetting{Store: headgate.NewMemorySize(10)}
		cache := must(New(store, 0))
		r := headgate.Request{Key: "k", Limit: headgate.PerHour(1), Cost: 1}
		take(t, cache, r)
		store.afterTake = func() {
			changes["reset"](t, store.Store, r.Limit)
			cache.Forget(r.Key, r.Limit)
		}
		if take(t, cache, r).Allowed() {
			t.Error("there is nothing to forget")
		}
		if d := take(t, cache, r); !d.Allowed() {
			t.Errorf("after the reset: %+v", d)
		}
	})
}

// A denial of a request that leaves headroom is remembered for those that need as much or more. It
// denies none that needs less.
func TestADenialOfBatchDeniesNoCriticalRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDistant(0)
		s := must(New(d, 0))
		limit := headgate.PerMinute(100)
		for _, step := range []struct {
			cost, headroom int64
			allowed, asks  bool
		}{
			{50, 50, true, true},
			{1, 50, false, true},
			{1, 50, false, false},
			{2, 50, false, false},
			{51, 0, false, false}, // as much as was denied
			{1, 49, true, true},
			{1, 0, true, true},
			{48, 0, true, true},
			{1, 0, false, true},
			{1, 50, false, false}, // more than what was denied last
			{1, 100, false, true}, // never
		} {
			before := d.asked.Load()
			r := headgate.Request{Key: "k", Limit: limit, Cost: step.cost, Headroom: step.headroom}
			got := must(s.Take(t.Context(), r))
			if asked := d.asked.Load() > before; got.Allowed() != step.allowed ||
				asked != step.asks {
				t.Errorf("%+v: allowed %t, asked the store %t", step, got.Allowed(), asked)
			}
		}
		group := []headgate.Request{
			{Key: "g", Limit: limit, Cost: 60}, {Key: "h", Limit: limit, Cost: 1, Headroom: 50},
		}
		ds := make([]headgate.Decision, 2)
		if err := s.TakeAll(t.Context(), group, ds); err != nil || !headgate.Granted(group, ds) {
			t.Fatal(ds, err)
		}
		group[0].Cost, group[0].Headroom = 1, 40
		for _, critical := range []bool{false, true} {
			if critical {
				group[0].Headroom, group[1].Headroom = 0, 0
			}
			if err := s.TakeAll(t.Context(), group, ds); err != nil ||
				headgate.Granted(group, ds) != critical {
				t.Errorf("a group, critical %t: %+v, %v", critical, ds, err)
			}
		}
		bad := headgate.Request{Key: "k", Limit: limit, Cost: 51, Headroom: -1}
		if got, err := s.Take(t.Context(), bad); err == nil {
			t.Errorf("a headroom below 0: %+v", got)
		}
	})
}
