package memtable

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/headgate/headgate/internal/algorithm"
)

func TestLogsBlocks(t *testing.T) {
	var a logs
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
}

// A slot holds the name of the largest block beside the length of its log and its marks.
func TestSlotHoldsTheLongestLog(t *testing.T) {
	var s Shard
	s.Init(10, nil)
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
