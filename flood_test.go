package headgate

import (
	"errors"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// bounds of m: the places that may be taken, and the slots that may be there.
func bounds(m *Memory) (taken, slots int) {
	for i := range m.shards {
		taken += m.shards[i].most + spareSlots
		slots += m.shards[i].mostSlots()
	}
	return taken, slots
}

func slotsOf(m *Memory) (n int) {
	for i := range m.shards {
		n += len(m.shards[i].slots)
	}
	return n
}

// own says whether key has a place of its own under l.
func own(m *Memory, key string, l Limit) bool {
	s, h := m.locate(key, l.rule)
	return s.find(h) != nil
}

// Ten times as many new keys as there is room for: the table stays within its
// bound, and keys that were there keep what they have consumed.
func TestFloodOfNewKeys(t *testing.T) {
	for _, l := range everyAlgorithm(3, time.Hour) {
		for _, keys := range []int{1, 50, 1000, 10_000} {
			t.Run(l.Algorithm().String()+"/"+strconv.Itoa(keys), func(t *testing.T) {
				flood(t, l, keys)
			})
		}
	}
}

func flood(t *testing.T, l Limit, keys int) {
	t.Helper()
	m := NewMemory(keys)
	mostTaken, mostSlots := bounds(m)
	known := []string{"one", "two", "three"}[:min(keys, 3)]
	for _, key := range known {
		ask(t, m, key, l, 3, 0)
	}
	for i := range 10 * keys {
		ask(t, m, "new"+strconv.Itoa(i), l, int64(i%4), time.Duration(i)*micro)
		if (i%997 == 0 || i == 10*keys-1) && (m.Keys() > mostTaken || slotsOf(m) > mostSlots) {
			t.Fatalf("after %d new keys: %d of at most %d places, %d of at most %d slots", i+1, m.Keys(), mostTaken, slotsOf(m), mostSlots)
		}
	}
	for _, key := range known {
		if d := ask(t, m, key, l, 1, time.Second); d.Allowed() || d.Remaining != 0 {
			t.Errorf("%q was exhausted before the flood, and now %+v", key, d)
		}
	}
}

// The memory that a flood can take is bounded in bytes, too: about 31 a key.
func TestBytesOfAFullStore(t *testing.T) {
	const keys = 1 << 20
	bytes := func() uint64 {
		runtime.GC()
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		return s.HeapAlloc
	}
	before := bytes()
	m := NewMemory(keys)
	l := FixedWindow(3, time.Hour)
	for i := range keys + keys/8 {
		_, _ = m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: 1, At: midnight})
	}
	if each := float64(bytes()-before) / keys; each > 32 {
		t.Errorf("%.1f bytes a key", each)
	}
	runtime.KeepAlive(m)
}

// While the store is full newcomers share one budget: of all of them together no
// more is granted than the limit allows one. When states decay there is room.
func TestNewcomersToAFullStoreShareOneBudget(t *testing.T) {
	for _, l := range everyAlgorithm(5, time.Hour) {
		t.Run(l.Algorithm().String(), func(t *testing.T) {
			m := NewMemory(100)
			for i := range 100 {
				ask(t, m, "known"+strconv.Itoa(i), l, 1, 0)
			}
			granted := int64(0)
			for i := range 1000 {
				if d := ask(t, m, "new"+strconv.Itoa(i), l, 1, 0); d.Allowed() {
					granted++
				} else if d.RetryAfter <= 0 || d.RetryAfter > 2*time.Hour {
					t.Fatalf("a newcomer may come back in %v", d.RetryAfter)
				}
			}
			if granted != 5 {
				t.Errorf("newcomers were granted %d of 5", granted)
			}
			for i := range 100 {
				if d := ask(t, m, "known"+strconv.Itoa(i), l, 1, 0); !d.Allowed() || d.Remaining != 3 {
					t.Fatalf("a known key notices: %+v", d)
				}
			}
			roomComesBack(t, m, l, 3*time.Hour)
		})
	}
}

// roomComesBack asks m, which is full, when all has decayed.
func roomComesBack(t *testing.T, m *Memory, l Limit, later time.Duration) {
	t.Helper()
	for i := range 100 { // the first to come make the room
		ask(t, m, "look"+strconv.Itoa(i), l, 0, later)
	}
	for i := range 50 {
		key := "late" + strconv.Itoa(i)
		for n := range int64(5) {
			if d := ask(t, m, key, l, 1, later); !d.Allowed() || d.Remaining != 4-n {
				t.Fatalf("late key %d, take %d: %+v", i, n+1, d)
			}
		}
		if !own(m, key, l) {
			t.Fatalf("late key %d has no place of its own", i)
		}
	}
}

// Each limit has a state of its own for newcomers: the exhausted one of another
// limit is not theirs.
func TestNewcomersUnderSeveralLimits(t *testing.T) {
	m := NewMemory(1)
	ask(t, m, "known", FixedWindow(1, time.Hour), 1, 0)
	for i := range spareSlots - 3 {
		l := FixedWindow(int64(i+2), time.Hour)
		granted := int64(0)
		for k := range 30 {
			if ask(t, m, strconv.Itoa(k), l, 1, 0).Allowed() {
				granted++
			}
		}
		if granted != l.Capacity() {
			t.Errorf("newcomers under %v were granted %d", l, granted)
		}
	}
}

// ErrFull, and nothing else, is the answer when newcomers under one more limit
// would need a place to share and there is none; nothing is charged.
func TestErrFull(t *testing.T) {
	m := NewMemory(1)
	known := FixedWindow(2, time.Hour)
	ask(t, m, "known", known, 1, 0)
	full := 0
	for i := range 40 {
		l := FixedWindow(int64(10+i), time.Hour)
		d, err := m.Take(t.Context(), Request{Key: "new", Limit: l, Cost: 1, At: midnight})
		if err == nil {
			if full > 0 {
				t.Errorf("limit %d found a place after ErrFull", i)
			}
			continue
		}
		if full++; !errors.Is(err, ErrFull) || d != (Decision{}) {
			t.Errorf("limit %d: %+v, %v", i, d, err)
		}
		if i < spareSlots-2 {
			t.Errorf("full after %d limits, with %d spare slots", i, spareSlots)
		}
		rs := []Request{{Key: "known", Limit: known, Cost: 1, At: midnight}, {Key: "new", Limit: l, Cost: 1, At: midnight}}
		if err := m.TakeAll(t.Context(), rs, make([]Decision, 2)); !errors.Is(err, ErrFull) {
			t.Errorf("limit %d beside a known one: %v", i, err)
		}
	}
	if full == 0 {
		t.Error("41 limits found a place in a store for one key")
	}
	if d := ask(t, m, "known", known, 0, 0); d.Remaining != 1 {
		t.Errorf("the known key was charged beside a limit that found no place: %+v", d)
	}
}

// Time that has not come makes no state stale: a request far ahead is decided at
// its time, and the keys of others are kept.
func TestTimeAheadDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(10)
		l := FixedWindow(5, time.Hour)
		for i := range 10 {
			must(m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: 5}))
		}
		for i := range 1000 {
			must(m.Take(t.Context(), Request{Key: "ahead" + strconv.Itoa(i), Limit: l, Cost: 1, At: time.Now().Add(1000 * time.Hour)}))
		}
		for i := range 10 {
			if d := must(m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: 1})); d.Allowed() {
				t.Errorf("key %d was forgotten: %+v", i, d)
			}
		}
	})
}
