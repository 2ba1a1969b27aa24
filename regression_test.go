package headgate

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

func take(t *testing.T, s Store, key string, l Limit, cost, micros int64) Decision {
	t.Helper()
	return ask(t, s, key, l, cost, time.Duration(micros)*time.Microsecond)
}

// The refill of a bucket has no upper bound: past 2^53 nothing is exact any more,
// and near 2^63 the time to fill it wraps around, so that it is always full.
func TestRefillHasABound(t *testing.T) {
	for _, l := range []Limit{
		PerSecond(math.MaxInt64).Burst(10),
		SteppedTokenBucket(math.MaxInt64, time.Second).Burst(10),
		PerSecond(maxExact + 1).Burst(10),
		SteppedTokenBucket(maxExact+1, time.Second).Burst(10),
	} {
		err := l.Validate()
		if err != nil {
			continue
		}
		t.Errorf("%v is valid", l)
		if back, err := ParseLimit(l.String()); back != l {
			t.Errorf("and its text does not parse: %v", err)
		}
		m := NewMemory(10)
		granted := 0
		for range 100 {
			if take(t, m, "k", l, 1, 0).Allowed() {
				granted++
			}
		}
		if granted != 10 {
			t.Errorf("and it grants %d of 10 in one instant", granted)
		}
	}
}

// TakeAll of two newcomers that share one state, which has room for one of them
// alone, says that both are granted and charges neither.
func TestTakeAllOfNewcomersThatDoNotFitTogether(t *testing.T) {
	m := NewMemory(1)
	l := FixedWindow(1, time.Hour)
	take(t, m, "known", l, 1, 0)
	for range 3 {
		rs := []Request{{Key: "a", Limit: l, Cost: 1, At: midnight.Add(micro)}, {Key: "b", Limit: l, Cost: 1, At: midnight.Add(micro)}}
		ds := make([]Decision, 2)
		if err := m.TakeAll(context.Background(), rs, ds); err != nil {
			t.Fatal(err)
		}
		if ds[0].Allowed() && ds[1].Allowed() {
			t.Errorf("both are said to be granted, one of 1 a newcomer: %+v", ds)
		}
	}
}

// A key that spent the budget of newcomers begins anew when it finds a place of
// its own: twice its limit in a moment.
func TestNewcomerFindsAPlaceOfItsOwn(t *testing.T) {
	m := NewMemory(3)
	long, short := FixedWindow(5, time.Hour), FixedWindow(1, time.Second)
	for i := range 3 {
		take(t, m, fmt.Sprint("known", i), short, 1, 0)
	}
	granted := int64(0)
	for i := range int64(10) {
		if take(t, m, "k", long, 1, i).Allowed() {
			granted++
		}
	}
	for i := range int64(100) { // the places of the others are free again
		if take(t, m, "k", long, 1, 2e6+i).Allowed() {
			granted++
		}
	}
	if granted != 5 {
		t.Errorf("granted %d of 5 an hour", granted)
	}
}

// ErrFull is for a table full of states that count; here all have decayed.
func TestFullOfStaleStatesIsNotFull(t *testing.T) {
	for try := range 200 {
		m := NewMemory(1)
		for i := range 15 {
			l := FixedWindow(1, time.Second).Named(fmt.Sprintf("limit%d-%d", try, i))
			take(t, m, fmt.Sprint(i), l, 1, 0)
			if i == 14 {
				take(t, m, "another", l, 1, 0) // the third to find it full since the last look for stale states
			}
		}
		l := FixedWindow(1, time.Second).Named(fmt.Sprintf("another%d", try))
		_, err := m.Take(context.Background(), Request{Key: "new", Limit: l, Cost: 1, At: midnight.Add(time.Hour)})
		if err != nil {
			t.Fatalf("an hour after every window ended: %v", err)
		}
	}
}

// NewMemory(n) promises room for at least n keys. A shard's slack of 1/32 is less
// than the spread of a hash over 64 shards of 4,096.
func TestRoomForAtLeastTheKeysAskedFor(t *testing.T) {
	const keys = 1 << 18
	m := NewMemory(keys)
	l := FixedWindow(1, time.Hour)
	refused := 0
	for i := range keys {
		if !take(t, m, fmt.Sprint(i), l, 1, 0).Allowed() {
			refused++
		}
	}
	if refused != 0 {
		t.Errorf("%d of %d keys found no place of their own", refused, keys)
	}
}

// A sliding log whose block is exactly full appends past its end, on the heap,
// though the expired entries at its front have left room.
func TestFullSlidingLogDoesNotAllocate(t *testing.T) {
	m := NewMemory(10)
	l := SlidingLog(16, 16*time.Microsecond)
	now := int64(0)
	allow := func() {
		now++
		if !take(t, m, "k", l, 1, now).Allowed() {
			t.Fatal("refused")
		}
	}
	for range 100 {
		allow()
	}
	if n := testing.AllocsPerRun(100, allow); n != 0 {
		t.Errorf("%v allocations a decision", n)
	}
}

// A step carried over to a longer period began before 1970, which the seven
// unsigned bytes that Redis keeps it in cannot say.
func TestSteppedAdoptedIntoACentury(t *testing.T) {
	old := SteppedTokenBucket(10, time.Second).Burst(10).rule
	l := SteppedTokenBucket(10, 100*365*24*time.Hour).Burst(10).rule
	s, _, _ := l.adopt(old, state{at: 1767225600e6, used: 10}, version{}, 1767225600e6+900e3)
	if s.at < 0 {
		t.Errorf("the last step was at %d", s.at)
	}
}

// ID is empty if l is not valid.
func TestZeroLimitWithANameHasNoID(t *testing.T) {
	for _, l := range []Limit{{}, Limit{}.Named(""), Limit{}.Named("api")} {
		if l.ID() != "" {
			t.Errorf("%#v has the ID %q", l, l.ID())
		}
	}
}

// A blank name is not a name.
func TestBlankNameIsRefused(t *testing.T) {
	if l, err := ParseLimit(" =5/s"); err == nil {
		t.Errorf(`" =5/s" is %v`, l)
	}
}

// An error says what would be accepted, and "at most 0" of a number that must be
// at least 1 is nothing.
func TestErrorNeverAsksForAtMost0(t *testing.T) {
	century := 100 * 365 * 24 * time.Hour
	for _, l := range []Limit{
		SlidingWindow(1, 2*century),
		Per(1, 2*century).Burst(1),
		SteppedTokenBucket(1, 2*century).Burst(1),
	} {
		if err := l.Validate(); err != nil && strings.Contains(err.Error(), "want at most 0 ") {
			t.Errorf("%v", err)
		}
	}
}

// A newcomer to a full store that gives back what its own forgotten state had
// taken gives others' tokens back.
func TestStrangerGivesBackOnlyItsOwn(t *testing.T) {
	m := NewMemory(1)
	l := FixedWindow(5, time.Hour)
	take(t, m, "known", l, 1, 0)
	granted := 0
	for i := range int64(20) {
		if take(t, m, fmt.Sprint("newcomer", i), l, 1, i).Allowed() {
			granted++
		}
		take(t, m, "took nothing", l, -1, i)
	}
	if granted != 5 {
		t.Errorf("newcomers were granted %d of 5 an hour", granted)
	}
}

// Places whose state has decayed are used again, says the comment on Memory: a
// stream of keys that come once needs no more room than are alive at a time. But
// a stale place is found only among those that a search passes, or by a rebuild,
// which comes once in so many tries; the keys in between share a budget.
func TestStreamOfKeysThatComeOnce(t *testing.T) {
	for _, l := range everyAlgorithm(2, 100*time.Millisecond) {
		m := NewMemory(1000)
		shared := 0
		for i := range 50_000 {
			key := fmt.Sprint("once", i)
			after := time.Duration(i) * time.Millisecond // some 200 are alive
			if d := ask(t, m, key, l, 1, after); !d.Allowed() || d.Remaining != 1 {
				shared++
			}
		}
		if shared > 0 {
			t.Errorf("%v: %d of 50,000 keys found no place of their own", l, shared)
		}
	}
}

// A sliding window whose count shrinks cuts the count of the window before to
// the new one, and then weighs it: what was consumed is forgotten.
func TestSlidingWindowShrinksWithoutForgetting(t *testing.T) {
	m := NewMemory(10)
	take(t, m, "k", SlidingWindow(30, time.Minute).Named("api"), 30, 0)
	if d := take(t, m, "k", SlidingWindow(30, time.Minute).Named("api"), 0, 100e6); d.Remaining != 20 {
		t.Fatalf("30 x 20/60 are counted: %+v", d)
	}
	if d := take(t, m, "k", SlidingWindow(4, time.Minute).Named("api"), 1, 100e6); d.Allowed() {
		t.Errorf("10 are still counted, and one more of 4 is granted: %+v", d)
	}
}

// The limits of one key begin their search at places of their own. The hash of a
// name changes little in its upper bits when the last letter does, and those
// choose the place: such limits pile up, and a search passes 9 slots, not 3.
func TestLimitsOfOneKeyLieApart(t *testing.T) {
	m := NewMemory(1 << 14)
	m.shards[0].slots = make([]slot, 1<<14)
	together := 0
	for i := range 1000 {
		seen := map[int]bool{}
		for _, name := range []string{"a", "b", "c", "d"} {
			_, h := m.locate(fmt.Sprint(i), PerHour(1).Named(name).rule)
			home := m.shards[0].home(h) / 16
			if seen[home] {
				together++
			}
			seen[home] = true
		}
	}
	if together > 100 { // about 6 by chance
		t.Errorf("%d of 3,000 limits lie beside another of their key", together)
	}
}
