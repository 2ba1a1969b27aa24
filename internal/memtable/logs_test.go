package memtable

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestLogsBlocks(t *testing.T) {
	var a logs
	for n, want := range map[int]int{1: 4, 4: 4, 5: 8, 8: 8, 9: 16, 2047: 2048, 65_535: 65_536,
		65_536: 65_536} {
		if room := len(a.entries(a.alloc(n))); room != want {
			t.Errorf("a block for %d entries has room for %d, want %d", n, room, want)
		}
	}
	if a.entries(0) != nil {
		t.Error("the zero block has room")
	}
	a.release(0) // does nothing
}

func TestLogsReusesWhatWasReleased(t *testing.T) {
	var a logs
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
		t.Errorf("the logs grew from %d to %d entries", size, len(a.blocks[1]))
	}
}

// Logs that grow, shrink and go, at random: each keeps what was saved in it.
func TestLogsKeepsLogsApart(t *testing.T) {
	var a logs
	random := rand.New(rand.NewPCG(1, 2))
	blocks, saved := make([]block, 200), make([][]algorithm.Entry, 200)
	for step := range 20_000 {
		i := random.IntN(len(saved))
		if !slices.Equal(a.entries(blocks[i])[:len(saved[i])], saved[i]) {
			t.Fatalf("step %d: log %d was overwritten", step, i)
		}
		switch n := random.IntN(50); {
		case n == 0:
			saved[i] = nil
		case n < 20 && len(saved[i]) > 0:
			saved[i] = saved[i][1:]
		default:
			saved[i] = append(slices.Clone(saved[i]), algorithm.Entry(random.Uint64()))
		}
		blocks[i] = a.save(blocks[i], saved[i])
		if len(saved[i]) == 0 && blocks[i] != 0 {
			t.Fatalf("step %d: an empty log has a block", step)
		}
	}
	var used [blockSizes]int
	for _, b := range blocks {
		if b != 0 {
			used[b.size()]++
		}
	}
	for size := range used {
		if all := len(a.blocks[size]) / (smallestBlock << size); used[size]+a.freeBlocks(
			size) != all {
			t.Errorf("size %d: %d blocks in use and %d free, of %d", size, used[size],
				a.freeBlocks(size), all)
		}
	}
}

func (a *logs) freeBlocks(size int) (n int) {
	for b := a.free[size]; b != 0; n++ {
		b = uint64(a.blocks[size][int(b-1)*(smallestBlock<<size)])
	}
	return n
}

// A slot holds the name of the largest block beside the length of its log and its marks.
func TestSlotHoldsTheLongestLog(t *testing.T) {
	var s Shard
	s.Init(10)
	for _, n := range []int{0, 1, 4, 65_536, 65_537, 131_072} {
		log := make([]algorithm.Entry, n)
		for i := range log {
			log[i] = algorithm.Entry(i + n)
		}
		var slot slot
		s.putLog(&slot, algorithm.Account{State: algorithm.State{At: 1 << 52}, Log: log})
		slot.a |= marks
		if !slices.Equal(s.log(&slot), log) || slot.b != 1<<52 {
			t.Errorf("a log of %d entries is kept as %d", n, len(s.log(&slot)))
		}
	}
}

// A table that is rebuilt frees the blocks of logs that have expired, and keeps those of others.
func TestRebuildFreesBlocks(t *testing.T) {
	var s Shard
	s.Init(100)
	l := algorithm.NewRule(algorithm.Terms{Algorithm: algorithm.SlidingLog, Capacity: 9,
		Every: time.Second}, "x")
	for round := range int64(50) {
		now := 1e12 + round*10e6
		for i := range uint64(5) {
			h := Hash((uint64(round)*5+i+1)<<20, l)
			if _, ok := s.Prepare(l, h, now); !ok {
				t.Fatal("the table is full")
			}
			s.Take(l, h, algorithm.Order{Now: now, Cost: 2}, true)
		}
		s.rebuild(l, now, len(s.slots))
	}
	if blocks, want := len(s.logs.blocks[0])/smallestBlock, 10; blocks > want {
		t.Errorf("%d blocks for 5 logs at a time; want at most %d", blocks, want)
	}
}
