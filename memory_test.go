package headgate

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestSlotsHoldNoPointers(t *testing.T) {
	for _, kind := range []reflect.Type{reflect.TypeFor[slot](), reflect.TypeFor[entry]()} {
		fields := []reflect.Type{kind}
		if kind.Kind() == reflect.Struct {
			fields = fields[:0]
			for f := range kind.Fields() {
				fields = append(fields, f.Type)
			}
		}
		for _, f := range fields {
			if f.Kind() != reflect.Uint64 {
				t.Errorf("%v holds a %v: the garbage collector may have to look at it", kind, f)
			}
		}
	}
	if size := reflect.TypeFor[slot]().Size(); size != 24 {
		t.Errorf("a slot has %d bytes, and 24 keep a key below 32", size)
	}
	if size := reflect.TypeFor[shard]().Size(); size%64 != 0 {
		t.Errorf("a shard has %d bytes, not a whole number of cache lines", size)
	}
}

func TestMemoryStartsNoGoroutine(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 10 {
		m := NewMemory(1 << 16)
		ask(t, m, "k", PerSecond(1), 1, 0)
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines before, %d after", before, now)
	}
}

func TestTwoStoresPlaceAKeyDifferently(t *testing.T) {
	a, b := NewMemory(0), NewMemory(0)
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

// A key under several limits, and several keys under one, never meet in a place.
func TestPlacesOfKeysAndLimitsDiffer(t *testing.T) {
	m := NewMemory(0)
	seen := map[[2]uint64]bool{}
	for i := range 1000 {
		for n := range int64(20) {
			s, h := m.locate(strconv.Itoa(i), FixedWindow(n+1, time.Second).rule)
			place := [2]uint64{uint64(m.shardOf(m.hash(strconv.Itoa(i)))), h >> idBits}
			if seen[place] {
				t.Fatal("two places are the same")
			}
			if s != &m.shards[place[0]] {
				t.Fatal("a key has another shard under another limit")
			}
			seen[place] = true
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
	m := NewMemory(200_000)
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
		v := want.take(l.rule, now, cost)
		d, err := m.Take(t.Context(), Request{Key: key, Limit: l, Cost: cost, At: time.UnixMicro(now)})
		if err != nil || d != v.decision(l) {
			t.Fatalf("step %d, %s, cost %d: %+v, %v\nwant %+v", step, place, cost, d, err, v.decision(l))
		}
	}
	checkMarks(t, m)
	if len(m.shards) < 8 || m.Keys() < 10_000 {
		t.Errorf("only %d keys in %d shards: this tells little", m.Keys(), len(m.shards))
	}
}

// reference keeps one state as a map would: without hashes, slots or blocks.
type reference struct {
	limit *rule
	state state
	other version
	log   []entry
}

func (s *reference) take(l *rule, now, cost int64) verdict {
	if l.algorithm == AlgorithmSlidingLog {
		return s.takeLog(l, now, cost)
	}
	was, other, adopted := s.state, s.other, false
	if s.limit != l {
		was, other, adopted = l.adopt(s.limit, was, other, now)
	}
	next, beside, v := l.decideBeside(was, other, now, cost, cost != 0)
	switch {
	case cost != 0 && v.granted():
		s.state, s.other, s.limit = next, beside, l
	case cost != 0 && adopted:
		s.state, s.other, s.limit = was, other, l
	}
	if s.state.used+s.state.previous == 0 {
		s.state = state{}
	}
	return v
}

func (s *reference) takeLog(l *rule, now, cost int64) verdict {
	log, keeper, adopted := l.adoptLog(s.limit, slices.Clone(s.log), now)
	v := slidingLog(l, log, now, cost, cost != 0)
	switch {
	case cost != 0 && v.granted():
		log, s.limit = stillKept(log, keeper, l, now)
		most := mostKept(log, s.limit, l)
		s.log = latest(record(log, now, max(cost, -l.capacity)), most)
	case cost != 0 && adopted:
		s.log, s.limit = log, keeper
	}
	return v
}

// A limit that no live slot is counted under keeps its id when the table is
// rebuilt to make room for its own first key.
func TestFirstKeyOfALimitSurvivesItsOwnRebuild(t *testing.T) {
	t.Run("everything else is stale", func(t *testing.T) {
		m := NewMemory(1000)
		l := PerSecond(1)
		for i := range 12 {
			ask(t, m, "old"+strconv.Itoa(i), l, 1, 0)
		}
		ask(t, m, "new", l, 1, time.Hour)
	})
	t.Run("everything else is under another limit", func(t *testing.T) {
		m := NewMemory(1000)
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

// More limits than there are ids for, one after the other, in a small store:
// those that no state is counted under any more make room for others.
func TestMoreLimitsThanIDs(t *testing.T) {
	m := NewMemory(1000)
	const limits = maxIDs + 5000
	for i := range limits {
		after := time.Duration(i) * time.Millisecond
		l := FixedWindow(3, time.Millisecond).Named("run" + strconv.Itoa(i))
		if d := ask(t, m, "k", l, 2, after); !d.Allowed() || d.Remaining != 1 {
			t.Fatalf("limit %d: %+v", i, d)
		}
	}
	for i := range m.shards {
		if n := len(m.shards[i].limits); n > len(m.shards[i].slots)+maxIDs/2 {
			t.Errorf("shard %d remembers %d limits for %d slots", i, n, len(m.shards[i].slots))
		}
	}
}

// As many live limits as there are ids: one more is refused, and the others stay.
func TestAllIDsInUse(t *testing.T) {
	m := NewMemory(2 * maxIDs)
	only := &m.shards[0]
	l := FixedWindow(3, time.Hour)
	var key string
	for s := (*shard)(nil); s != only; s, _ = m.locate(key, l.rule) {
		key += "."
	}
	// A key has one shard for all its limits, which this makes large enough.
	only.most = 2 * maxIDs
	named := func(i int) Limit { return l.Named("run" + strconv.Itoa(i)) }
	for i := range maxIDs {
		ask(t, m, key, named(i), 1, 0)
	}
	if _, err := m.Take(t.Context(), Request{Key: key, Limit: named(maxIDs), Cost: 1, At: midnight}); !errors.Is(err, ErrFull) {
		t.Errorf("limit 65,537 at once: %v", err)
	}
	for _, i := range []int{0, 1, 77, maxIDs - 1} {
		if d := ask(t, m, key, named(i), 0, 0); d.Remaining != 2 {
			t.Errorf("limit %d: %+v", i, d)
		}
	}
	if d := ask(t, m, key, named(maxIDs), 1, 2*time.Hour); !d.Allowed() {
		t.Errorf("when all have decayed: %+v", d)
	}
}

func TestReset(t *testing.T) {
	for _, l := range everyAlgorithm(5, time.Hour) {
		m := NewMemory(100)
		ask(t, m, "a", l, 5, 0)
		ask(t, m, "b", l, 5, 0)
		for _, key := range []string{"a", "a", "stranger", ""} {
			if err := m.Reset(t.Context(), key, l); err != nil {
				t.Errorf("%v: %v", l, err)
			}
		}
		if d := ask(t, m, "a", l, 0, 0); d.Remaining != 5 || d.ResetAfter != 0 {
			t.Errorf("%v: after its reset: %+v", l, d)
		}
		if d := ask(t, m, "b", l, 0, 0); d.Remaining != 0 {
			t.Errorf("%v: after the reset of another: %+v", l, d)
		}
		if d := ask(t, m, "a", l, 5, 0); !d.Allowed() {
			t.Errorf("%v: all of it again: %+v", l, d)
		}
	}
	if err := NewMemory(1).Reset(t.Context(), "k", Limit{}); !isInvalid(err) {
		t.Errorf("no limit gives the error %v", err)
	}
}

// Any bytes are a key, and no two are the same.
func TestKeysHoldAnyBytes(t *testing.T) {
	m := NewMemory(100)
	l := FixedWindow(1, time.Hour)
	keys := []string{"", " ", "\x00", "\x00\x00", "{a}", "{a", "a:b", "a", ":", "é", "e\u0301", "\xff\xfe", "user_x:y", "user:x_y", string(make([]byte, 100_000))}
	for _, key := range keys {
		if d := ask(t, m, key, l, 1, 0); !d.Allowed() {
			t.Errorf("%.20q met another", key)
		}
	}
	for _, key := range keys {
		if d := ask(t, m, key, l, 1, 0); d.Allowed() {
			t.Errorf("%.20q was forgotten", key)
		}
	}
}

// A store of whatever size is asked for works.
func TestSizes(t *testing.T) {
	l := PerHour(1)
	for _, keys := range []int{math.MinInt, -1, 0, 1, 2, 3, 12, 13, 4095, 8191, 8192, 1 << 20, math.MaxInt} {
		m := NewMemory(keys)
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
