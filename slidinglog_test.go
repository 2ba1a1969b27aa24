package headgate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestArenaBlocks(t *testing.T) {
	var a arena
	for n, want := range map[int]int{1: 4, 4: 4, 5: 8, 8: 8, 9: 16, 2047: 2048, 65_535: 65_536, 65_536: 65_536} {
		if room := len(a.entries(a.alloc(n))); room != want {
			t.Errorf("a block for %d entries has room for %d, want %d", n, room, want)
		}
	}
	if a.entries(0) != nil {
		t.Error("the zero block has room")
	}
	a.release(0) // does nothing
}

func TestArenaReusesWhatWasReleased(t *testing.T) {
	var a arena
	var blocks []block
	for range 100 {
		blocks = append(blocks, a.alloc(7))
	}
	size := len(a.blocks[1])
	for round := range 3 {
		for _, b := range blocks {
			a.release(b)
		}
		again := make(map[block]bool)
		for i := range blocks {
			blocks[i] = a.alloc(8)
			again[blocks[i]] = true
		}
		if len(again) != 100 {
			t.Errorf("round %d: 100 blocks are %d different ones", round, len(again))
		}
	}
	if len(a.blocks[1]) != size {
		t.Errorf("the arena grew from %d to %d entries", size, len(a.blocks[1]))
	}
}

// Logs that grow, shrink and go, at random: each keeps what was saved in it.
func TestArenaKeepsLogsApart(t *testing.T) {
	var a arena
	random := rand.New(rand.NewPCG(1, 2))
	blocks, logs := make([]block, 200), make([][]entry, 200)
	for step := range 20_000 {
		i := random.IntN(len(logs))
		if !slices.Equal(a.entries(blocks[i])[:len(logs[i])], logs[i]) {
			t.Fatalf("step %d: log %d was overwritten", step, i)
		}
		switch n := random.IntN(50); {
		case n == 0:
			logs[i] = nil
		case n < 20 && len(logs[i]) > 0:
			logs[i] = logs[i][1:]
		default:
			logs[i] = append(slices.Clone(logs[i]), entry(random.Uint64()))
		}
		blocks[i] = a.save(blocks[i], logs[i])
		if len(logs[i]) == 0 && blocks[i] != 0 {
			t.Fatalf("step %d: an empty log has a block", step)
		}
	}
}

func TestEntryHoldsAnyTimeAndCount(t *testing.T) {
	for _, at := range []int64{0, 1, 1767225600e6, maxExact} {
		for _, count := range []int64{1, 2, maxEntry} {
			log := record(nil, at, count)
			if len(log) != 1 || log[0].at() != at || log[0].count() != count {
				t.Errorf("%d at %d is kept as %v: %d at %d", count, at, log, log[0].count(), log[0].at())
			}
		}
	}
}

func TestRecord(t *testing.T) {
	type grant struct{ at, count int64 }
	const big = 2 * maxEntry
	for _, c := range []struct {
		remark string
		grants []grant // recorded one after the other
		want   []grant // the entries
	}{
		{"two instants", []grant{{1, 2}, {5, 3}}, []grant{{1, 2}, {5, 3}}},
		{"one instant is one entry", []grant{{1, 2}, {1, 3}}, []grant{{1, 5}}},
		{"an earlier instant counts as the last", []grant{{5, 2}, {1, 3}}, []grant{{5, 5}}},
		{"as much as an entry holds", []grant{{1, maxEntry}}, []grant{{1, maxEntry}}},
		{"one more takes another", []grant{{1, maxEntry + 1}}, []grant{{1, maxEntry}, {1, 1}}},
		{"which fills up first", []grant{{1, maxEntry + 1}, {1, maxEntry}}, []grant{{1, maxEntry}, {1, maxEntry}, {1, 1}}},
		{"the latest is given back first", []grant{{1, 2}, {5, 3}, {7, -2}}, []grant{{1, 2}, {5, 1}}},
		{"all of the latest", []grant{{1, 2}, {5, 3}, {7, -3}}, []grant{{1, 2}}},
		{"more than the latest", []grant{{1, 2}, {5, 3}, {7, -4}}, []grant{{1, 1}}},
		{"all", []grant{{1, 2}, {5, 3}, {7, -5}}, nil},
		{"more than all", []grant{{1, 2}, {7, -9}}, nil},
		{"of nothing", []grant{{7, -1}}, nil},
		{"parts of a large one", []grant{{1, big + 7}, {2, -8}}, []grant{{1, maxEntry}, {1, maxEntry - 1}}},
		{"a whole log at once", []grant{{1, maxLog}, {2, -maxLog}}, nil},
	} {
		var log []entry
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

// As many entries as a log can have: 65,535 grants at as many instants.
func TestLongestSlidingLog(t *testing.T) {
	m := NewMemory(10)
	l := SlidingLog(maxLog, time.Second)
	ask(t, m, "key", l, 1, 0)
	var log []entry
	for i := range int64(maxLog) { // what as many decisions would have recorded
		log = record(log, midnight.UnixMicro()+i, 1)
	}
	s, h := m.locate("key", l.rule)
	s.writeLog(s.find(h), l.rule, h, log, 0, 0, maxLog)
	play(t, m, l, []row{
		{maxLog * micro, 1, false, 0, time.Second - maxLog*micro, time.Second - micro, "full"},
		{maxLog * micro, maxLog, false, 0, time.Second - micro, time.Second - micro, "all of it, when the last has left"},
		{time.Second + 9*micro, 10, true, 0, 0, time.Second, "ten have left"},
		{time.Second + 9*micro, -20, true, 20, 0, maxLog*micro - 20*micro, "twenty are given back: ten of now, and the ten before"},
		{time.Second + 9*micro, 20, true, 0, 0, time.Second, "and taken again"},
		{3 * time.Second, maxLog, true, 0, 0, time.Second, "at once, when all have left"},
		{3 * time.Second, -1000, true, 1000, 0, time.Second, "a thousand of them back"},
		{4*time.Second - micro, 1001, false, 1000, micro, micro, "the rest is there"},
		{4 * time.Second, 0, true, maxLog, 0, 0, "and gone"},
	})
}

// Grants of more than an entry holds leave all at once.
func TestLargeCostsInASlidingLog(t *testing.T) {
	play(t, NewMemory(10), SlidingLog(10_000, time.Second), []row{
		{0, 5000, true, 5000, 0, time.Second, "three entries"},
		{0, 3000, true, 2000, 0, time.Second, "more of the same instant"},
		{10 * micro, 2048, false, 2000, time.Second - 10*micro, time.Second - 10*micro, "too much"},
		{10 * micro, 2000, true, 0, 0, time.Second, "just enough"},
		{20 * micro, -2500, true, 2500, 0, time.Second - 20*micro, "beyond the latest, into the large one"},
		{20 * micro, 2501, false, 2500, time.Second - 20*micro, time.Second - 20*micro, "exactly that much"},
		{time.Second - micro, 2501, false, 2500, micro, micro, "a microsecond early"},
		{time.Second, 10_000, true, 0, 0, time.Second, "all at once"},
	})
}
