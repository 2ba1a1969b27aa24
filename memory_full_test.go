package headgate

import (
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/internal/memtable"
)

// own reports whether key has a slot of its own under l.
func own(m *Memory, key string, l Limit) bool {
	hash := m.hash(key)
	return m.shard(hash).Known(memtable.Hash(hash, l.rule))
}

// Ten times as many new keys as there is room for: the table stays within its
// bound, and keys that were there keep what they have consumed.
func TestFloodOfNewKeys(t *testing.T) {
	for _, l := range everyAlgorithm(3, time.Hour) {
		for _, keys := range []int{1, 50, 1000, 5000} {
			t.Run(l.Algorithm().String()+"/"+strconv.Itoa(keys), func(t *testing.T) {
				flood(t, l, keys)
			})
		}
	}
}

func flood(t *testing.T, l Limit, keys int) {
	t.Helper()
	m := NewMemorySize(keys)
	mostTaken := keys + keys/10 + keys/4 + 20*len(m.shards)
	known := []string{"one", "two", "three"}[:min(keys, 3)]
	for _, key := range known {
		ask(t, m, key, l, 3, 0)
	}
	for i := range 10 * keys {
		ask(t, m, "new"+strconv.Itoa(i), l, int64(i%4), time.Duration(i)*micro)
		if (i%997 == 0 || i == 10*keys-1) && m.Keys() > mostTaken {
			t.Fatalf("after %d new keys: %d of at most %d slots are taken", i+1, m.Keys(),
				mostTaken)
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
	m := NewMemorySize(keys)
	l := FixedWindow(3, time.Hour)
	for i := range keys + keys/8 {
		_, _ = m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: 1, At: midnight})
	}
	if each := float64(bytes()-before) / keys; each > 32 {
		t.Errorf("%.1f bytes a key", each)
	}
	runtime.KeepAlive(m)
}

// While the store is full, new keys share one budget: together they are granted what the
// limit allows one. When states decay there is room.
func TestNewKeysOfAFullStoreShareOneBudget(t *testing.T) {
	for _, l := range everyAlgorithm(5, time.Hour) {
		t.Run(l.Algorithm().String(), func(t *testing.T) {
			m := NewMemorySize(100)
			for i := range 100 {
				ask(t, m, "known"+strconv.Itoa(i), l, 1, 0)
			}
			granted := int64(0)
			for i := range 1000 {
				if d := ask(t, m, "new"+strconv.Itoa(i), l, 1, 0); d.Allowed() {
					granted++
				} else if d.RetryAfter <= 0 || d.RetryAfter > 2*time.Hour {
					t.Fatalf("a new key may come back in %v", d.RetryAfter)
				}
			}
			if granted != 5 {
				t.Errorf("new keys were granted %d of 5", granted)
			}
			for i := range 100 {
				if d := ask(t, m, "known"+strconv.Itoa(i), l, 1, 0); !d.Allowed() ||
					d.Remaining != 3 {
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

// spare is how many overflow slots a small store has.
const spare = 16

// ErrFull is the error when a new key needs an overflow slot and none is free. Nothing is
// charged.
func TestErrFull(t *testing.T) {
	m := NewMemorySize(1)
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
		if i < spare-2 {
			t.Errorf("full after %d limits, with %d spare slots", i, spare)
		}
		rs := []Request{{Key: "known", Limit: known, Cost: 1, At: midnight},
			{Key: "new", Limit: l, Cost: 1, At: midnight}}
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

// A request far ahead is decided at its time, and expires no state of other keys.
func TestTimeAheadDropsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemorySize(10)
		l := FixedWindow(5, time.Hour)
		for i := range 10 {
			must(m.Take(t.Context(), Request{Key: strconv.Itoa(i), Limit: l, Cost: 5}))
		}
		for i := range 1000 {
			must(m.Take(t.Context(), Request{Key: "ahead" + strconv.Itoa(i), Limit: l, Cost: 1,
				At: time.Now().Add(1000 * time.Hour)}))
		}
		for i := range 10 {
			if d := must(m.Take(t.Context(),
				Request{Key: strconv.Itoa(i), Limit: l, Cost: 1})); d.Allowed() {
				t.Errorf("key %d was forgotten: %+v", i, d)
			}
		}
	})
}

// After a flood, keys that had no part in it are granted, although another new key spent the
// shared budget of the day.
func TestNewKeysAfterAFloodAreGranted(t *testing.T) {
	m := NewMemorySize(1000)
	second, day := FixedWindow(5, time.Second), FixedWindow(100, 24*time.Hour)
	for i := range 3000 {
		ask(t, m, fmt.Sprint("flood", i), second, 5, 0)
	}
	for range 100 {
		ask(t, m, "spender", day, 1, 0)
	}
	for i := range 500 {
		if d := ask(t, m, fmt.Sprint("stranger", i), day, 1, time.Minute); !d.Allowed() {
			t.Fatalf("stranger %d is refused its first request of a day: %+v", i, d)
		}
	}
	if d := ask(t, m, "spender", day, 1, time.Minute); d.Allowed() {
		t.Errorf("the spender, at a place of its own, is granted more: %+v", d)
	}
}

// Revisions of one named limit share an overflow slot: alternating gains nothing.
func TestOverflowSlotUnderTwoRevisions(t *testing.T) {
	m := NewMemorySize(100)
	pro, free := PerHour(1000).Named("plan"), PerHour(10).Named("plan")
	for i := range 400 {
		ask(t, m, fmt.Sprint("flood", i), free, 5, 0)
	}
	var granted int64
	for i := range 100 {
		if ask(t, m, "greedy", pro, 900, 0).Allowed() {
			granted += 900
		}
		ask(t, m, fmt.Sprint("stranger", i), free, 1, 0)
	}
	if granted > 1000 {
		t.Errorf("granted %d of 1000 an hour at one instant", granted)
	}
}

// Once, a group of new keys shared one slot of a full store, and each counted as if it were
// alone. Now they fail together, and are not charged.
func TestNewKeysOfAFullStoreAreNotTakenTogether(t *testing.T) {
	m := NewMemorySize(10)
	l := PerHour(10)
	for i := range 100 {
		ask(t, m, fmt.Sprint("flood", i), l, 1, 0)
	}
	for _, forced := range [][2]bool{{false, false}, {false, true}, {true, false}} {
		rs := []Request{
			{Key: "a", Limit: l, Cost: 6, At: midnight, Force: forced[0]},
			{Key: "b", Limit: l, Cost: 6, At: midnight, Force: forced[1]},
		}
		if err := m.TakeAll(t.Context(), rs, make([]Decision, 2)); !errors.Is(err, ErrFull) {
			t.Errorf("two new keys, forced %v: %v", forced, err)
		}
	}
}

// Once, a key that begins a slot of its own with what the shared slot has used was denied after
// another key of its group was charged to the shared slot.
func TestADeniedGroupChargesNothingInAFullStore(t *testing.T) {
	limit, short := PerHour(100), PerSecond(1)
	for range 50 { // stores place keys differently
		m := NewMemorySize(1000)
		for i := range 1000 {
			l := limit
			if i%25 == 0 {
				l = short
			}
			ask(t, m, fmt.Sprint("known", i), l, 1, 0)
		}
		for i := range 20 {
			ask(t, m, fmt.Sprint("shared", i), limit, 1, 0)
		}
		for i := range 20 {
			first := Request{Key: fmt.Sprint("new", i), Limit: limit, Cost: 45,
				At: midnight.Add(2 * time.Second)}
			second := first
			second.Key = fmt.Sprint("shared", i)
			ds := make([]Decision, 2)
			err := m.TakeAll(t.Context(), []Request{first, second}, ds)
			if err == nil && ds[0].Allowed() != ds[1].Allowed() && ds[0].Remaining < 45 {
				t.Fatalf("denied, and %q is charged: %+v", first.Key, ds)
			}
		}
	}
}

// A group of new keys takes no more slots than there are, also if slots of the group may be
// dropped.
func TestGroupOfMoreKeysThanThereIsRoomFor(t *testing.T) {
	l := PerSecond(1)
	group := func(m *Memory, from, to int, after time.Duration) error {
		var rs []Request
		for i := from; i < to; i++ {
			rs = append(rs, Request{Key: strconv.Itoa(i), Limit: l, Cost: 1,
				At: midnight.Add(after)})
		}
		return m.TakeAll(t.Context(), rs, make([]Decision, len(rs)))
	}
	for _, n := range []int{2, 10, 11, 12, 40,
		4000} { // one of 11 shares the overflow slot with no other
		m := NewMemorySize(10)
		err := group(m, 0, n, 0)
		if full := n > 11; errors.Is(err, ErrFull) != full || m.Keys() > 11 || full &&
			m.Keys() != 0 {
			t.Fatalf("a group of %d: %v, %d slots are taken", n, err, m.Keys())
		}
	}
	m := NewMemorySize(10)
	if err := group(m, 0, 10, 0); err != nil {
		t.Fatal(err)
	}
	if err := group(m, 0, 12, time.Hour); !errors.Is(err, ErrFull) {
		t.Errorf("the known keys have expired, and two are new: %v, %d slots are taken", err,
			m.Keys())
	}
	if err := group(m, 20, 30, time.Hour); err != nil {
		t.Errorf("ten new keys: %v", err)
	}
}

// A search goes on past a slot that was vacated. Few slots expire, so that new keys use those that
// their searches pass, and the table is not rebuilt.
func TestVacatedSlotsDoNotHideOthers(t *testing.T) {
	const day = 24 * time.Hour
	vacatedDoNotHide(t, FixedWindow(1, time.Second), 0, FixedWindow(1, day))
	oneADay := PerDay(1)
	vacatedDoNotHide(t, oneADay, time.Second-day, oneADay) // a store that knows one limit only
}

// vacatedDoNotHide fills stores with keys that expire a second after midnight and others.
func vacatedDoNotHide(t *testing.T, short Limit, began time.Duration, long Limit) {
	t.Helper()
	for range 20 { // stores place keys differently
		m := NewMemorySize(1000)
		for i := range 40 {
			ask(t, m, fmt.Sprint("short", i), short, 1, began)
		}
		for i := range 960 {
			ask(t, m, fmt.Sprint("long", i), long, 1, 0)
		}
		ask(t, m, "look", long, 0, 0) // rebuilds the table while nothing has expired
		for i := range 30 {
			ask(t, m, fmt.Sprint("look", i), long, 0, time.Minute)
		}
		for i := range 960 {
			if d := ask(t, m, fmt.Sprint("long", i), long, 0, time.Minute); d.Allowed() {
				t.Fatalf("long%d is forgotten", i)
			}
		}
	}
}

// A key that took part in a flood that is over has no part in the next one.
func TestAFloodThatIsOverIsForgotten(t *testing.T) {
	m := NewMemorySize(3)
	l := FixedWindow(5, time.Hour)
	fill := func(after time.Duration) {
		for i := range 3 {
			ask(t, m, fmt.Sprint("known", i, after), PerSecond(1), 1, after)
		}
	}
	fill(0)
	ask(t, m, "k", l, 5, 0)
	fill(3 * time.Hour)
	ask(t, m, "another", l, 5, 3*time.Hour)
	for i := range 3 { // the first to come make the room
		ask(t, m, fmt.Sprint("look", i), l, 0, 3*time.Hour+2*time.Second)
	}
	if d := ask(t, m, "k", l, 1, 3*time.Hour+2*time.Second); !d.Allowed() || d.Remaining != 4 {
		t.Errorf("a key of the first flood, after the second: %+v", d)
	}
}

// NewMemorySize(n) has room for at least n keys. Once, a shard's slack of 1/32 was less than the
// spread of a hash over 64 shards of 4,096.
func TestRoomForAtLeastTheKeysAskedFor(t *testing.T) {
	const keys = 1 << 18
	m := NewMemorySize(keys)
	l := FixedWindow(1, time.Hour)
	refused := 0
	for i := range keys {
		if !take(t, m, fmt.Sprint(i), l, 1, 0).Allowed() {
			refused++
		}
	}
	if refused != 0 {
		t.Errorf("%d of %d keys have no slot of their own", refused, keys)
	}
}

// Once, a new key in a full store could refund the tokens of other keys.
func TestNewKeyOfAFullStoreCannotRefundOthers(t *testing.T) {
	m := NewMemorySize(1)
	l := FixedWindow(5, time.Hour)
	take(t, m, "known", l, 1, 0)
	granted := 0
	for i := range int64(20) {
		if take(t, m, fmt.Sprint("new key", i), l, 1, i).Allowed() {
			granted++
		}
		take(t, m, "took nothing", l, -1, i)
	}
	if granted != 5 {
		t.Errorf("new keys were granted %d of 5 an hour", granted)
	}
}

// A stream of keys that come once and expire does not grow the table: what it holds at any time is
// what counts.
func TestAStreamOfKeysThatExpireKeepsTheTableSmall(t *testing.T) {
	m := NewMemory()
	limit := PerSecond(1000) // a key is in its initial state after a millisecond
	heap := func() int64 {
		var stats runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	now := midnight
	stream := func(keys int) {
		for range keys {
			now = now.Add(10 * time.Microsecond)
			r := Request{Key: strconv.FormatInt(now.UnixMicro(), 10), Limit: limit, Cost: 1,
				At: now}
			if d, err := m.Take(t.Context(), r); err != nil || !d.Allowed() {
				t.Fatal(d, err)
			}
		}
	}
	stream(50_000)
	before := heap()
	stream(500_000)
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the store holds %d bytes more after 500,000 keys, 100 of which are alive", grown)
	}
	runtime.KeepAlive(m)
}
