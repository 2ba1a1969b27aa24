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

// However many goroutines take at one instant, exactly n are granted; and whoever
// looks and gives back meanwhile changes nothing.
func TestTakesAtOneInstant(t *testing.T) {
	for _, l := range everyAlgorithm(500, time.Hour) {
		m := NewMemory(1000)
		var granted atomic.Int64
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 100 {
					d, err := m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: midnight})
					if err != nil {
						t.Error(err)
					}
					if d.Allowed() {
						granted.Add(1)
					}
					_, _ = m.Take(t.Context(), Request{Key: "k", Limit: l, At: midnight})
				}
			})
		}
		group.Wait()
		if granted.Load() != 500 {
			t.Errorf("%v: %d were granted", l, granted.Load())
		}
	}
}

// Groups of random keys in random order, from many goroutines: nobody waits for
// ever, and what is granted adds up.
func TestTakeAllOfRandomGroups(t *testing.T) {
	m := NewMemory(1 << 20)
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
		t.Error("no limit was near its end: this tells little")
	}
}

func TestTakeAll(t *testing.T) {
	m := NewMemory(100)
	three, five := FixedWindow(3, time.Hour), PerHour(5)
	type ask struct {
		key   string
		limit Limit
		cost  int64
	}
	type answer struct {
		allowed   bool
		remaining int64
	}
	for i, c := range []struct {
		asks    []ask
		answers []answer
		remark  string
	}{
		{nil, nil, "nothing"},
		{[]ask{{"a", three, 1}, {"b", three, 2}, {"a", five, 3}}, []answer{{true, 2}, {true, 1}, {true, 2}}, "all are granted"},
		{[]ask{{"a", three, 1}, {"b", three, 2}}, []answer{{true, 2}, {false, 1}}, "one refuses: the other alone would have been granted, and is not charged"},
		{[]ask{{"b", three, 2}, {"a", three, 1}}, []answer{{false, 1}, {true, 2}}, "in the other order, too"},
		{[]ask{{"a", three, 2}, {"c", three, 0}}, []answer{{true, 0}, {true, 3}}, "a look beside a take"},
		{[]ask{{"b", three, 1}, {"a", three, 0}}, []answer{{true, 0}, {false, 0}}, "a look that sees nothing left stands in nobody's way"},
		{[]ask{{"a", three, -1}, {"a", five, 1}}, []answer{{true, 1}, {true, 1}}, "one given back, one taken"},
		{[]ask{{"a", three, -1}, {"a", five, 9}}, []answer{{true, 1}, {false, 1}}, "one refused, so none is given back"},
	} {
		rs, ds := make([]Request, len(c.asks)), make([]Decision, len(c.asks))
		for j, a := range c.asks {
			rs[j] = Request{Key: a.key, Limit: a.limit, Cost: a.cost, At: midnight}
		}
		if err := m.TakeAll(t.Context(), rs, ds); err != nil {
			t.Fatal(err)
		}
		for j, want := range c.answers {
			if got := (answer{ds[j].Allowed(), ds[j].Remaining}); got != want || ds[j].Limit != c.asks[j].limit {
				t.Errorf("row %d (%s), request %d: %+v, want %+v", i+1, c.remark, j, ds[j], want)
			}
		}
	}

	for what, rs := range map[string][]Request{
		"one limit twice":    {{Key: "k", Limit: three}, {Key: "k", Limit: three}},
		"one identity twice": {{Key: "k", Limit: three.Named("x")}, {Key: "k", Limit: FixedWindow(9, time.Hour).Named("x")}},
		"no limit":           {{Key: "k", Limit: three, Cost: 1}, {Key: "l"}},
		"a time before 1970": {{Key: "k", Limit: three, Cost: 1}, {Key: "l", Limit: three, At: time.Unix(-1, 0)}},
	} {
		if err := m.TakeAll(t.Context(), rs, make([]Decision, len(rs))); !isInvalid(err) {
			t.Errorf("%s gives the error %v", what, err)
		}
	}
	if err := m.TakeAll(t.Context(), make([]Request, 1), nil); !isInvalid(err) {
		t.Errorf("too few decisions give the error %v", err)
	}
	if d := must(m.Take(t.Context(), Request{Key: "k", Limit: three, At: midnight})); d.Remaining != 3 {
		t.Errorf("a request beside a bad one was charged: %+v", d)
	}
}
