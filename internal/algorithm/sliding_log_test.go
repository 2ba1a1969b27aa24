package algorithm

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestEntryHoldsAnyTimeAndCount(t *testing.T) {
	for _, at := range []int64{0, 1, 1767225600e6, MaxExact} {
		for _, count := range []int64{1, 2, maxCount} {
			log := record(nil, at, count)
			if len(log) != 1 || log[0].at() != at || log[0].count() != count {
				t.Errorf("%d at %d is kept as %v: %d at %d", count, at, log, log[0].count(),
					log[0].at())
			}
		}
	}
}

func TestRecord(t *testing.T) {
	type grant struct{ at, count int64 }
	const big = 2 * maxCount
	for _, c := range []struct {
		remark string
		grants []grant // recorded one after the other
		want   []grant // the entries
	}{
		{"two instants", []grant{{1, 2}, {5, 3}}, []grant{{1, 2}, {5, 3}}},
		{"one instant is one entry", []grant{{1, 2}, {1, 3}}, []grant{{1, 5}}},
		{"as much as an entry holds", []grant{{1, maxCount}}, []grant{{1, maxCount}}},
		{"one more takes another", []grant{{1, maxCount + 1}}, []grant{{1, maxCount}, {1, 1}}},
		{"which fills up first", []grant{{1, maxCount + 1}, {1, maxCount}},
			[]grant{{1, maxCount}, {1, maxCount}, {1, 1}}},
		{"the latest is given back first", []grant{{1, 2}, {5, 3}, {7, -2}},
			[]grant{{1, 2}, {5, 1}}},
		{"all of the latest", []grant{{1, 2}, {5, 3}, {7, -3}}, []grant{{1, 2}}},
		{"more than the latest", []grant{{1, 2}, {5, 3}, {7, -4}}, []grant{{1, 1}}},
		{"all", []grant{{1, 2}, {5, 3}, {7, -5}}, nil},
		{"more than all", []grant{{1, 2}, {7, -9}}, nil},
		{"of nothing", []grant{{7, -1}}, nil},
		{"parts of a large one", []grant{{1, big + 7}, {2, -8}},
			[]grant{{1, maxCount}, {1, maxCount - 1}}},
		{"a whole log at once", []grant{{1, MaxLog}, {2, -MaxLog}}, nil},
	} {
		var log []Entry
		for _, g := range c.grants {
			log = record(log, g.at, g.count)
		}
		var got []grant
		for _, e := range log {
			got = append(got, grant{e.at(), e.count()})
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.remark, got, c.want)
		}
	}
}

// A log is written to only by what is charged and kept: a store may hand out the memory of a state.
func TestLogIsNotWrittenUnlessCharged(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 1))
	l := NewRule(Terms{Algorithm: SlidingLog, Capacity: 5, Every: time.Second}, "x")
	for range 200 {
		k, now := Account{}, int64(1e9)
		for range 200 {
			room := append(make([]Entry, 0, 32), k.Log...)
			before := slices.Clone(room[:cap(room)])
			k.Log = room
			o := Order{Now: now + random.Int64N(5)*200e3, Cost: random.Int64N(9) - 2,
				Force: random.IntN(3) == 0}
			if !o.Force && random.IntN(2) == 0 {
				o.MaxWait = random.Int64N(3e6)
			}
			if o.Cost < 0 && random.IntN(2) == 0 {
				o.Cancel = k.At + random.Int64N(2)
			}
			next, _, changed := l.Take(k, o, random.IntN(3) > 0)
			if !changed && !slices.Equal(room[:cap(room)], before) {
				t.Fatalf("%+v changed the log of %+v", o, k)
			}
			if changed {
				k, now = next, o.Now
			}
		}
	}
}
