package headgate

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// exactDenied counts what a TopDenied estimates.
type exactDenied struct {
	counts map[string]int64 // by key and limit
	total  int64
}

func denied(key string, l Limit) Observed {
	return Observed{Request: Request{Key: key, Limit: l, Cost: 1}, Outcome: OutcomeDenied}
}

func (e *exactDenied) deny(t *TopDenied, key string, l Limit) {
	t.Decided(nil, denied(key, l)) //nolint:staticcheck // it is not used
	e.counts[l.ID()+"\x00"+key]++
	e.total++
}

// check holds each promise of top against the exact counts. No key may be longer than
// what an entry keeps.
func (e *exactDenied) check(top *TopDenied) error {
	n := int64(len(top.entries))
	list, sum := top.Top(), int64(0)
	listed := map[string]bool{}
	for i, d := range list {
		name := d.Limit.ID() + "\x00" + d.Key
		exact := e.counts[name]
		if listed[name] {
			return fmt.Errorf("%q is listed twice", name)
		}
		listed[name] = true
		if exact > d.Denied || exact < d.Denied-d.Over || d.Over > e.total/n || exact == 0 {
			return fmt.Errorf("%q was denied %d times of %d; the entry of %d says %d, over %d", name, exact, e.total, n, d.Denied, d.Over)
		}
		if i > 0 && d.Denied > list[i-1].Denied {
			return fmt.Errorf("entry %d has %d, the one before %d", i, d.Denied, list[i-1].Denied)
		}
		sum += d.Denied
	}
	if sum != e.total || int64(len(list)) > n {
		return fmt.Errorf("%d entries of at most %d add up to %d; want %d", len(list), n, sum, e.total)
	}
	for name, exact := range e.counts {
		if exact > e.total/n && !listed[name] {
			return fmt.Errorf("%q was denied %d times of %d and is not among %d", name, exact, e.total, n)
		}
	}
	return top.whole()
}

// whole says what is wrong with the order of t or its lists.
func (t *TopDenied) whole() error {
	taken := 0
	for i, r := range t.ranks {
		if t.entries[r.entry].rank != int32(i) || i > 0 && r.count < t.ranks[i-1].count {
			return fmt.Errorf("rank %d is %+v of %+v after %+v", i, r, t.entries[r.entry], t.ranks[max(i-1, 0)])
		}
		if r.count > 0 {
			taken++
		}
	}
	for _, head := range t.heads {
		for i := head - 1; i >= 0; i = t.entries[i].next - 1 {
			taken--
		}
	}
	if taken != 0 {
		return fmt.Errorf("%d more entries are taken than lie in lists", taken)
	}
	return nil
}

// The bounds hold at any time for streams of every shape.
func TestTopDeniedKeepsItsBounds(t *testing.T) {
	limits := []Limit{PerSecond(1), FixedWindow(1, time.Second).Named("a"), FixedWindow(2, time.Second).Named("b")}
	random := rand.New(rand.NewPCG(3, 4))
	zipf := rand.NewZipf(random, 1.2, 1, 100_000)
	for name, next := range map[string]func(i int) int{
		"zipf":        func(int) int { return int(zipf.Uint64()) },
		"uniform":     func(int) int { return random.IntN(300) },
		"all new":     func(i int) int { return i },
		"in turn":     func(i int) int { return i % 101 }, // one more than there are entries: the worst for it
		"ever rarer":  func(i int) int { return i / 50 },
		"one and new": func(i int) int { return i * (i % 2) },
		"few":         func(i int) int { return i % 7 },
	} {
		for _, size := range []int{1, 2, 100} {
			top, exact := NewTopDenied(size), &exactDenied{counts: map[string]int64{}}
			rounds := often(20_000)
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
					clear(exact.counts)
					exact.total = 0
				}
			}
			if err := exact.check(top); err != nil {
				t.Errorf("%s, %d entries: %v", name, size, err)
			}
		}
	}
}

func FuzzTopDenied(f *testing.F) {
	f.Add(uint8(3), []byte("abcabcabdbddeefabcdefgh"))
	f.Add(uint8(1), []byte("aab"))
	f.Add(uint8(7), []byte(strings.Repeat("the quick brown fox ", 9)))
	f.Fuzz(func(t *testing.T, size uint8, stream []byte) {
		limits := []Limit{PerSecond(1), FixedWindow(1, time.Second)}
		top, exact := NewTopDenied(int(size%16)+1), &exactDenied{counts: map[string]int64{}}
		for _, b := range stream {
			if b == 0xff {
				top.Reset()
				exact = &exactDenied{counts: map[string]int64{}}
				continue
			}
			exact.deny(top, string(make([]byte, b>>4))+string(b&15), limits[b&1])
		}
		if err := exact.check(top); err != nil {
			t.Error(err)
		}
	})
}

// The first of a Zipf stream are found among far more keys than there are entries.
func TestTopDeniedFindsTheFirst(t *testing.T) {
	l, top := FixedWindow(1, time.Second), NewTopDenied(1000)
	zipf, exact := rand.NewZipf(rand.New(rand.NewPCG(5, 6)), 1.1, 1, 1<<30), map[string]int64{}
	for range often(400_000) {
		key := fmt.Sprint(zipf.Uint64())
		exact[key]++
		top.Decided(t.Context(), denied(key, l))
	}
	for i, d := range top.Top()[:10] {
		if d.Key != fmt.Sprint(i) || d.Denied != exact[d.Key] || d.Over != 0 {
			t.Errorf("place %d: %+v; want key %d, denied %d times", i, d, i, exact[fmt.Sprint(i)])
		}
	}
}

// Any bytes are a key, of any length: those that begin alike are told apart all the same.
func TestTopDeniedKeys(t *testing.T) {
	l, top := FixedWindow(1, time.Second), NewTopDenied(10)
	begins := strings.Repeat("x", MaxDeniedKey)
	keys := []string{"", "\x00", "\xff\xfe{}:", begins, begins[1:], begins + "a", begins + "b", strings.Repeat("y", 1<<20)}
	for i, key := range keys {
		for range i + 1 {
			top.Decided(t.Context(), denied(key, l))
		}
	}
	for i, d := range top.Top() {
		key := keys[len(keys)-1-i]
		want := DeniedKey{Key: key, Limit: l, Denied: int64(len(keys) - i)}
		if len(key) > MaxDeniedKey {
			want.Key, want.Cut = key[:MaxDeniedKey], true
		}
		if d != want {
			t.Errorf("place %d: %+v; want %+v", i, d, want)
		}
	}
}

// Many that begin alike and are of one length, more than there are lists to tell them apart by.
func TestTopDeniedLongKeys(t *testing.T) {
	l, top := FixedWindow(1, time.Second), NewTopDenied(64)
	for range 2 {
		for i := range 64 {
			top.Decided(t.Context(), denied(fmt.Sprint(strings.Repeat("x", MaxDeniedKey), 100+i), l))
		}
	}
	for _, d := range top.Top() {
		if d.Denied != 2 || d.Over != 0 || !d.Cut {
			t.Errorf("%+v; want 2 denials", d)
		}
	}
}

// Keys that are told in whole are compared in whole: to be of one hash is not enough.
func TestTopDeniedCollisions(t *testing.T) {
	l, top := FixedWindow(1, time.Second), NewTopDenied(4)
	top.entries[top.enter(5, "ab")].limit = l
	for _, c := range []struct {
		hash  uint64
		key   string
		limit Limit
		found bool
	}{
		{5, "ab", l, true}, {5, "ac", l, false}, {5, "a", l, false}, {5, "abc", l, false}, {5, "", l, false},
		{5, "ab", FixedWindow(2, time.Second), false}, {5 + 8, "ab", l, false},
	} {
		if found := top.find(c.hash, c.key, c.limit) >= 0; found != c.found {
			t.Errorf("%+v: found is %t", c, found)
		}
	}
}

// Only denials count, each for the limit that denied; a named limit whose numbers
// change goes on.
func TestTopDeniedCountsDenials(t *testing.T) {
	top := NewTopDenied(0)
	s := must(Observe(NewMemory(0), Observer{Decided: top.Decided}))
	before, after, wide := FixedWindow(1, time.Minute).Named("api"), FixedWindow(2, time.Minute).Named("api"), FixedWindow(9, time.Hour)
	ask(t, s, "k", before, 1, 0)
	ask(t, s, "k", before, 0, 0) // a look is no denial
	ask(t, s, "k", before, 5, 0) // counts as one
	if err := s.TakeAll(t.Context(), []Request{{Key: "k", Limit: before, Cost: 1, At: midnight}, {Key: "k", Limit: wide, Cost: 1, At: midnight}}, make([]Decision, 2)); err != nil {
		t.Fatal(err)
	}
	ask(t, s, "k", after, 1, 0)
	ask(t, s, "k", after, 1, 0)
	ask(t, s, "k", wide, 10, 0)
	if _, err := s.Take(t.Context(), Request{Key: "k", Cost: 1}); err == nil {
		t.Error("a request without a limit was decided")
	}
	top.Decided(t.Context(), denied("k", Limit{})) // no store tells that
	want := []DeniedKey{{Key: "k", Limit: after, Denied: 3}, {Key: "k", Limit: wide, Denied: 1}}
	if got := fmt.Sprint(top.Top()); got != fmt.Sprint(want) {
		t.Errorf("top %s\nwant %v", got, want)
	}
	top.Reset()
	if got := top.Top(); len(got) != 0 {
		t.Errorf("after a Reset: %v", got)
	}
}

func TestTopDeniedAtOnce(t *testing.T) {
	l, top := FixedWindow(1, time.Second), NewTopDenied(50)
	const callers, each = 8, 5000
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			for i := range each {
				top.Decided(t.Context(), denied(fmt.Sprint((i+1)*(i%3)*c%1000), l))
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
	if err := top.whole(); err != nil || sum != callers*each {
		t.Errorf("%d denials counted; want %d; %v", sum, callers*each, err)
	}
}

// A flood of new keys, short and long, takes no more room than there is from the start.
func TestTopDeniedTakesBoundedMemory(t *testing.T) {
	l := FixedWindow(1, time.Second)
	const entries = 10_000
	before := heap()
	top := NewTopDenied(entries)
	long := strings.Repeat("x", 4096)
	for i := range often(200_000) {
		top.Decided(t.Context(), denied(fmt.Sprint(i, long[:i%4096]), l))
	}
	each := float64(heap()-before) / entries
	runtime.KeepAlive(top)
	t.Logf("%.0f bytes an entry", each)
	if each > 200 {
		t.Errorf("%.0f bytes an entry; want at most 200", each)
	}
}

func TestNewTopDeniedSizes(t *testing.T) {
	for entries, want := range map[int]int{-1: DefaultDenied, 0: DefaultDenied, 1: 1, 3: 3} {
		if got := len(NewTopDenied(entries).entries); got != want {
			t.Errorf("NewTopDenied(%d) has %d entries; want %d", entries, got, want)
		}
	}
}

// A ticket that nobody has is no denial of the key: who cancels late is not short of tokens.
func TestTopDeniedTakeBack(t *testing.T) {
	top := NewTopDenied(1)
	s := must(Observe(NewMemory(0), Observer{Decided: top.Decided}))
	for cost := range int64(2) {
		must(s.Take(t.Context(), Request{Key: "k", Limit: FixedWindow(1, time.Minute), Cost: -cost, Ticket: 7}))
	}
	if got := top.Top(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// heap returns the bytes in use. Two collections free what other tests left.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
