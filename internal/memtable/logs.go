package memtable

import "github.com/headgate/headgate/internal/algorithm"

// logs holds the sliding logs of a shard outside the sight of the garbage collector:
// blocks of 4, 8, 16 … entries, each size in a slice of its own, with the free blocks of a
// size linked through their first entry.
type logs struct {
	blocks [blockSizes][]algorithm.Entry
	free   [blockSizes]uint64 // 1 + index of the first free block, 0: none
}

const (
	smallestBlock = 4
	blockSizes    = 16 // up to 131,072 entries
)

// block names a block: its size, and its index among those of that size. The zero block
// holds nothing.
type block uint64

// blockBits is how many bits the name of a block takes.
const (
	indexBits = 39
	blockBits = indexBits + 5
)

func (b block) size() int  { return int(b>>indexBits) - 1 }
func (b block) index() int { return int(b & (1<<indexBits - 1)) }

// entries is the room of b, of length 0 for the zero block.
func (a *logs) entries(b block) []algorithm.Entry {
	if b == 0 {
		return nil
	}
	room := smallestBlock << b.size()
	start := b.index() * room
	return a.blocks[b.size()][start : start+room : start+room]
}

func (a *logs) alloc(n int) block {
	size := 0
	for smallestBlock<<size < n {
		size++
	}
	name := block(size+1) << indexBits
	if head := a.free[size]; head != 0 {
		b := name | block(head-1)
		a.free[size] = uint64(a.entries(b)[0])
		return b
	}
	room := smallestBlock << size
	index := len(a.blocks[size]) / room
	a.blocks[size] = append(a.blocks[size], make([]algorithm.Entry, room)...)
	return name | block(index)
}

func (a *logs) release(b block) {
	if b == 0 {
		return
	}
	a.entries(b)[0] = algorithm.Entry(a.free[b.size()])
	a.free[b.size()] = uint64(b.index()) + 1
}

// save writes log, which may lie in b, into b if it has room, else into a new block, and
// returns that.
func (a *logs) save(b block, log []algorithm.Entry) block {
	if len(log) == 0 {
		a.release(b)
		return 0
	}
	if len(log) > len(a.entries(b)) {
		next := a.alloc(len(log))
		copy(a.entries(next), log)
		a.release(b)
		return next
	}
	copy(a.entries(b), log)
	return b
}
