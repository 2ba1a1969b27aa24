package headgate

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
	"github.com/headgate/headgate/internal/memtable"
)

func TestMemoryStartsNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		m := NewMemorySize(1 << 16)
		ask(t, m, "k", PerSecond(1), 1, 0)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
}

func TestTwoStoresPlaceAKeyDifferently(t *testing.T) {
	a, b := NewMemory(), NewMemory()
	same := 0
	for i := range 64 {
		if key := strconv.Itoa(i); a.hash(key) == b.hash(key) {
			same++
		}
	}
	if same > 0 {
		t.Errorf("%d of 64 keys have one hash in two stores", same)
	}
}

// A key under several limits, and several keys under one, never share a slot.
func TestSlotsOfKeysAndLimitsDiffer(t *testing.T) {
	m := NewMemory()
	seen := map[[2]uint64]bool{}
	for i := range 1000 {
		for n := range int64(20) {
			hash := m.hash(strconv.Itoa(i))
			slot := [2]uint64{uint64(m.shardOf(hash)), memtable.Hash(hash, FixedWindow(n+1, time.Second).rule) >> 16}
			if seen[slot] {
				t.Fatal("two slots are the same")
			}
			seen[slot] = true
		}
	}
}

// The table against a map: many keys, several limits that change, resets, time
// that passes, and all the growth on the way. The map's states are moved by the
// same pure functions.
func TestTableHoldsWhatAMapHolds(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	numbers := func() (int64, time.Duration) {
		return 1 + random.Int64N(9), time.Duration(1+random.IntN(50)) * time.Second
	}
	pick := func() Limit {
		n, period := numbers()
		l := everyAlgorithm(n, period)[random.IntN(5)]
		return l.Named("limit" + strconv.Itoa(random.IntN(3)))
	}
	limits := make([]Limit, 40)
	for i := range limits {
		limits[i] = pick()
	}
	m := NewMemorySize(200_000)
	model := map[string]*reference{}
	now := midnight.UnixMicro()
	for step := range 100_000 {
		now += random.Int64N(2000)
		if random.IntN(50) == 0 {
			limits[random.IntN(len(limits))] = pick()
		}
		l := limits[random.IntN(len(limits))]
		key := strconv.Itoa(random.IntN(1 + step/20))
		place := key + " " + l.ID()
		if random.IntN(40) == 0 {
			if err := m.Reset(t.Context(), key, l); err != nil {
				t.Fatal(err)
			}
			delete(model, place)
			continue
		}
		cost := random.Int64N(6) - 1
		want := model[place]
		if want == nil {
			want = &reference{limit: l.rule}
			model[place] = want
		}
		if want.limit != l.rule && want.limit.Initial(want.Account, now) { // it may be forgotten, or not yet
			*want = reference{limit: l.rule}
			if err := m.Reset(t.Context(), key, l); err != nil {
				t.Fatal(err)
			}
		}
		v := want.take(l.rule, now, cost)
		d, err := m.Take(t.Context(), Request{Key: key, Limit: l, Cost: cost, At: time.UnixMicro(now)})
		if err != nil || d != decision(l, v) {
			t.Fatalf("step %d, %s, cost %d: %+v, %v\nwant %+v", step, place, cost, d, err, decision(l, v))
		}
	}
	if len(m.shards) < 8 || m.Keys() < 10_000 {
		t.Errorf("only %d keys in %d shards: this shows little", m.Keys(), len(m.shards))
	}
}

// reference keeps one state as a map would: without hashes, slots or blocks.
type reference struct {
	limit *algorithm.Rule
	algorithm.Account
}

func (s *reference) take(l *algorithm.Rule, now, cost int64) algorithm.Verdict {
	k := s.Account
	k.Log = slices.Clone(k.Log)
	k.State, k.Scaled = l.Adopt(s.limit, k.State)
	next, v, changed := l.Take(k, algorithm.Order{Now: now, Cost: cost}, true)
	if changed {
		s.Account, s.limit = next, l
	}
	return v
}

// A limit that no live slot is counted under keeps its id when the table is
// rebuilt to make room for its own first key.
func TestFirstKeyOfALimitSurvivesItsOwnRebuild(t *testing.T) {
	t.Run("everything else is stale", func(t *testing.T) {
		m := NewMemorySize(1000)
		l := PerSecond(1)
		for i := range 12 {
			ask(t, m, "old"+strconv.Itoa(i), l, 1, 0)
		}
		ask(t, m, "new", l, 1, time.Hour)
	})
	t.Run("everything else is under another limit", func(t *testing.T) {
		m := NewMemorySize(1000)
		first, second := PerHour(5), FixedWindow(3, time.Hour)
		for i := range 12 {
			ask(t, m, "old"+strconv.Itoa(i), first, 1, 0)
		}
		for i := range int64(3) {
			if d := ask(t, m, "new", second, 1, time.Duration(i)*micro); !d.Allowed() {
				t.Fatalf("take %d of 3 was refused", i+1)
			}
		}
		if d := ask(t, m, "new", second, 1, 4*micro); d.Allowed() {
			t.Error("a fourth of 3 was granted")
		}
	})
}

// More limits than a shard has indices for, one after the other, in a small store: those that
// no state is counted under any more make room for others.
func TestMoreLimitsThanIndices(t *testing.T) {
	m := NewMemorySize(1000)
	for i := range maxIDs + 5000 {
		after := time.Duration(i) * time.Millisecond
		l := FixedWindow(3, time.Millisecond).Named("run" + strconv.Itoa(i))
		if d := ask(t, m, "k", l, 2, after); !d.Allowed() || d.Remaining != 1 {
			t.Fatalf("limit %d: %+v", i, d)
		}
	}
}

const maxIDs = 1 << 16

// As many live limits as there are indices: one more fails, and the others stay.
func TestAllIndicesInUse(t *testing.T) {
	m := NewMemorySize(4096 - 1) // one shard
	m.shards[0].Init(2 * maxIDs)
	l := FixedWindow(3, time.Hour)
	named := func(i int) Limit { return l.Named("run" + strconv.Itoa(i)) }
	for i := range maxIDs {
		ask(t, m, "k", named(i), 1, 0)
	}
	if _, err := m.Take(t.Context(), Request{Key: "k", Limit: named(maxIDs), Cost: 1, At: midnight}); !errors.Is(err, ErrFull) {
		t.Errorf("limit 65,537 at once: %v", err)
	}
	for _, i := range []int{0, 1, 77, maxIDs - 1} {
		if d := ask(t, m, "k", named(i), 0, 0); d.Remaining != 2 {
			t.Errorf("limit %d: %+v", i, d)
		}
	}
	if d := ask(t, m, "k", named(maxIDs), 1, 2*time.Hour); !d.Allowed() {
		t.Errorf("when all have decayed: %+v", d)
	}
}

// A store of any size works.
func TestSizes(t *testing.T) {
	l := PerHour(1)
	for _, keys := range []int{0, 1, 2, 3, 12, 13, 4095, 8191, 8192, 1 << 20, math.MaxInt} {
		m := NewMemorySize(keys)
		if n := len(m.shards); n&(n-1) != 0 {
			t.Errorf("%d keys: %d shards", keys, n)
		}
		for i := range min(max(keys, 20), 100) {
			key := strconv.Itoa(i)
			if d := ask(t, m, key, l, 1, 0); keys > 100 && !d.Allowed() {
				t.Errorf("%d keys: key %d found no place", keys, i)
			}
			if d := ask(t, m, key, l, 1, 0); d.Allowed() {
				t.Errorf("%d keys: key %d was forgotten", keys, i)
			}
		}
	}
}

// Once, a sliding window whose count was lowered forgot what had been used.
func TestSlidingWindowShrinksWithoutForgetting(t *testing.T) {
	m := NewMemorySize(10)
	take(t, m, "k", SlidingWindow(30, time.Minute).Named("api"), 30, 0)
	if d := take(t, m, "k", SlidingWindow(30, time.Minute).Named("api"), 0, 100e6); d.Remaining != 20 {
		t.Fatalf("30 x 20/60 are counted: %+v", d)
	}
	if d := take(t, m, "k", SlidingWindow(4, time.Minute).Named("api"), 1, 100e6); d.Allowed() {
		t.Errorf("10 are still counted, and one more of 4 is granted: %+v", d)
	}
}

// A size that was computed wrong, or read from a variable that is not set, is not a store of few
// keys, which would deny new clients.
func TestSizesThatNobodyMeans(t *testing.T) {
	if got, want := len(NewMemorySize(0).shards), len(NewMemory().shards); got != want {
		t.Errorf("a size of 0 makes %d shards; want %d", got, want)
	}
	defer func() {
		err, _ := recover().(error)
		if want := "headgate: keys is -7; want at least 0"; err == nil || err.Error() != want {
			t.Errorf("a negative size: %v; want %s", err, want)
		}
	}()
	NewMemorySize(-7)
}
