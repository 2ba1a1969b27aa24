package observe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// exactDenied counts exactly what a TopDenied estimates.
type exactDenied struct {
	counts map[string]int64 // by key and limit
	total  int64
}

func newExactDenied() *exactDenied { return &exactDenied{counts: map[string]int64{}} }

func denial(key string, l headgate.Limit) Event {
	return Event{Request: headgate.Request{Key: key, Limit: l, Cost: 1}, Outcome: Denied}
}

func (e *exactDenied) deny(t *TopDenied, key string, l headgate.Limit) {
	t.Decided(nil, denial(key, l)) //nolint:staticcheck // the context is not used
	e.counts[l.ID()+"\x00"+key]++
	e.total++
}

// check compares each promise of top with the exact counts. No key may be longer than what an
// entry keeps.
func (e *exactDenied) check(top *TopDenied) error {
	n := int64(top.size)
	list, sum := top.Top(), int64(0)
	listed := map[string]bool{}
	for i, d := range list {
		name := d.Limit.ID() + "\x00" + d.Key
		exact := e.counts[name]
		if listed[name] {
			return fmt.Errorf("%q is listed twice", name)
		}
		listed[name] = true
		if exact > d.Denied || exact < d.AtLeast || d.Denied-d.AtLeast > e.total/n || exact == 0 {
			return fmt.Errorf("%q was denied %d times of %d; of %d entries, its is %+v",
				name, exact, e.total, n, d)
		}
		if i > 0 && d.Denied > list[i-1].Denied {
			return fmt.Errorf("entry %d has %d, the one before %d", i, d.Denied, list[i-1].Denied)
		}
		sum += d.Denied
	}
	if sum != e.total || int64(len(list)) > n {
		return fmt.Errorf("%d entries of at most %d add up to %d; want %d",
			len(list), n, sum, e.total)
	}
	for name, exact := range e.counts {
		if exact > e.total/n && !listed[name] {
			return fmt.Errorf("%q was denied %d times of %d and is not among %d",
				name, exact, e.total, n)
		}
	}
	return top.consistent()
}

// consistent returns what is wrong with the heap of t or with its map.
func (t *TopDenied) consistent() error {
	for i, d := range t.counts {
		if d.index != i || t.entries[d.id] != d || d.count < t.counts[max(i-1, 0)/2].count {
			return fmt.Errorf("entry %d is %+v", i, d)
		}
	}
	if len(t.entries) != len(t.counts) || len(t.counts) > t.size {
		return fmt.Errorf("%d entries, %d counts; want at most %d", len(t.entries),
			len(t.counts), t.size)
	}
	return nil
}

func TestTopDeniedKeepsItsBoundsForStreamsOfEveryShape(t *testing.T) {
	limits := []headgate.Limit{
		headgate.PerSecond(1),
		headgate.FixedWindow(1, time.Second).Named("a"),
		headgate.FixedWindow(2, time.Second).Named("b"),
	}
	random := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(random, 1.2, 1, 100_000)
	for name, next := range map[string]func(i int) int{
		"zipf":        func(int) int { return int(zipf.Uint64()) },
		"uniform":     func(int) int { return random.IntN(300) },
		"all new":     func(i int) int { return i },
		"in turn":     func(i int) int { return i % 101 }, // one more than entries: the worst case
		"ever rarer":  func(i int) int { return i / 50 },
		"one and new": func(i int) int { return i * (i % 2) },
		"few":         func(i int) int { return i % 7 },
	} {
		for _, size := range []int{1, 2, 100} {
			top, exact := NewTopDenied(size), newExactDenied()
			const rounds = 5000
			for i := range rounds {
				n := next(i)
				exact.deny(top, fmt.Sprint("k", n), limits[n%len(limits)])
				if i%1999 == 0 || i < 8 {
					if err := exact.check(top); err != nil {
						t.Fatalf("%s, %d entries, after %d: %v", name, size, i+1, err)
					}
				}
				if i == rounds*3/4 {
					top.Reset()
					exact = newExactDenied()
				}
			}
			if err := exact.check(top); err != nil {
				t.Errorf("%s, %d entries: %v", name, size, err)
			}
		}
	}
}

// Keys are any bytes of any length. Long keys that begin alike are still told apart.
func TestTopDeniedKeys(t *testing.T) {
	l, top := headgate.FixedWindow(1, time.Second), NewTopDenied(10)
	begins := strings.Repeat("x", MaxDeniedKey)
	keys := []string{
		"", "\x00", "\xff\xfe{}:", begins, begins[1:], begins + "a", begins + "b",
		strings.Repeat("y", 1<<20),
	}
	for i, key := range keys {
		for range i + 1 {
			top.Decided(t.Context(), denial(key, l))
		}
	}
	for i, d := range top.Top() {
		key, n := keys[len(keys)-1-i], int64(len(keys)-i)
		if want := (DeniedKey{key[:min(len(key), MaxDeniedKey)], l, n, n}); d != want {
			t.Errorf("place %d: %+v; want %+v", i, d, want)
		}
	}
}

// Only denials count, each for the limit that denied. A named limit whose numbers change keeps its
// count.
func TestTopDeniedCountsDenialsOnly(t *testing.T) {
	top := NewTopDenied(0)
	s := must(New(headgate.NewMemory(), Observer{Decided: top.Decided}))
	before := headgate.FixedWindow(1, time.Minute).Named("api")
	after := headgate.FixedWindow(2, time.Minute).Named("api")
	wide := headgate.FixedWindow(9, time.Hour)
	ask(t, s, before, 1)
	ask(t, s, before, 0) // a peek
	ask(t, s, before, 5) // counts as one
	group := []headgate.Request{
		{Key: "k", Limit: before, Cost: 1, At: midnight},
		{Key: "k", Limit: wide, Cost: 1, At: midnight}, // rolled back
	}
	if err := s.TakeAll(t.Context(), group, make([]headgate.Decision, 2)); err != nil {
		t.Fatal(err)
	}
	ask(t, s, after, 1)
	ask(t, s, after, 2)
	ask(t, s, wide, 10)
	if _, err := s.Take(t.Context(), headgate.Request{Key: "k", Cost: 1}); err == nil {
		t.Error("a request without a limit was decided")
	}
	top.Decided(t.Context(), denial("k", headgate.Limit{})) // which no store reports
	refund := denial("k", after)
	refund.Request.Cost = -1 // a cancel that came too late
	top.Decided(t.Context(), refund)
	want := []DeniedKey{{"k", after, 3, 3}, {"k", wide, 1, 1}}
	if got := top.Top(); !slices.Equal(got, want) {
		t.Errorf("top %+v\nwant %+v", got, want)
	}
	top.Reset()
	if got := top.Top(); len(got) != 0 {
		t.Errorf("after a Reset: %v", got)
	}
}

// What Add counts is what as many denials count, under the zero Limit as under any other.
func TestTopDeniedAdd(t *testing.T) {
	l, top := headgate.FixedWindow(1, time.Second), NewTopDenied(2)
	top.Add("a", l, 3)
	top.Decided(t.Context(), denial("a", l))
	top.Add("a", headgate.Limit{}, 2)
	top.Add("b", headgate.Limit{}, 5) // takes the entry denied least, with its count
	want := []DeniedKey{{"b", headgate.Limit{}, 7, 5}, {"a", l, 4, 4}}
	if got := top.Top(); !slices.Equal(got, want) {
		t.Errorf("top %+v\nwant %+v", got, want)
	}
}

// Counts neither fall nor wrap around, so that the smallest one stays in front.
func TestTopDeniedAddsWhateverIsGiven(t *testing.T) {
	top := NewTopDenied(2)
	for _, n := range []int64{math.MaxInt64, -5, math.MaxInt64} {
		top.Add("large", headgate.Limit{}, n)
		top.Add("small", headgate.Limit{}, -n)
	}
	top.Add("new", headgate.Limit{}, 1)
	if got := top.Top(); got[0].Key != "large" || got[0].Denied != math.MaxInt64 ||
		got[1].Key != "new" {
		t.Errorf("got %+v", got)
	}
}

func TestTopDeniedCountsForManyGoroutines(t *testing.T) {
	l, top := headgate.FixedWindow(1, time.Second), NewTopDenied(50)
	const callers, each = 8, 5000
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range each {
				top.Decided(t.Context(), denial(fmt.Sprint((i+1)*(i%3)*c%1000), l))
				if i%1000 == 0 {
					top.Top()
				}
			}
		})
	}
	all.Wait()
	sum := int64(0)
	for _, d := range top.Top() {
		sum += d.Denied
	}
	if err := top.consistent(); err != nil || sum != callers*each {
		t.Errorf("%d denials counted; want %d; %v", sum, callers*each, err)
	}
}

func TestTopDeniedTakesNoMoreMemoryForAFloodOfNewKeys(t *testing.T) {
	l := headgate.FixedWindow(1, time.Second)
	const entries = 10_000
	before := heapBytes()
	top := NewTopDenied(entries)
	long := strings.Repeat("x", 4096)
	for i := range 50_000 {
		top.Decided(t.Context(), denial(fmt.Sprint(i, long[:i%4096]), l))
	}
	each := float64(heapBytes()-before) / entries
	runtime.KeepAlive(top)
	if each > 580 {
		t.Errorf("%.0f bytes for each entry; want at most 580", each)
	}
}

func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestNewTopDeniedSizes(t *testing.T) {
	for entries, want := range map[int]int{-1: 1000, 0: 1000, 1: 1, 3: 3, 4: 4, 1 << 30: 1 << 24} {
		if top := NewTopDenied(entries); top.size != want {
			t.Errorf("NewTopDenied(%d) has %d entries; want %d", entries, top.size, want)
		}
	}
}
