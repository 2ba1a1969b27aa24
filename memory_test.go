package headgate

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

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
	if _, err := m.Take(t.Context(),
		Request{Key: "k", Limit: named(maxIDs), Cost: 1, At: midnight}); !errors.Is(err, ErrFull) {
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
