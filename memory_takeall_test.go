package headgate

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Groups of random keys in random order, from many goroutines: no call blocks for
// ever, and what is granted adds up.
func TestTakeAllOfRandomGroups(t *testing.T) {
	m := NewMemorySize(1 << 20)
	if len(m.shards) < 16 {
		t.Fatalf("only %d shards to lock", len(m.shards))
	}
	l := FixedWindow(200, 1e6*time.Hour)
	const keys = 60
	var granted [keys]atomic.Int64
	var group sync.WaitGroup
	for g := range 32 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(5, uint64(g)))
			for range 100 {
				places := random.Perm(keys)[:1+random.IntN(12)]
				rs, ds := make([]Request, len(places)), make([]Decision, len(places))
				for i, p := range places {
					rs[i] = Request{Key: strconv.Itoa(p), Limit: l, Cost: 1 + random.Int64N(3)}
				}
				if err := m.TakeAll(t.Context(), rs, ds); err != nil {
					t.Error(err)
					return
				}
				if slices.ContainsFunc(ds, func(d Decision) bool { return !d.Allowed() }) {
					continue
				}
				for i, p := range places {
					granted[p].Add(rs[i].Cost)
				}
			}
		})
	}
	group.Wait()
	exhausted := 0
	for p := range granted {
		d := must(m.Take(t.Context(), Request{Key: strconv.Itoa(p), Limit: l}))
		if left := 200 - granted[p].Load(); d.Remaining != left {
			t.Errorf("key %d: granted %d, remaining %d", p, granted[p].Load(), d.Remaining)
		}
		if d.Remaining < 5 {
			exhausted++
		}
	}
	if exhausted == 0 {
		t.Error("no limit was near its end: this shows little")
	}
}
