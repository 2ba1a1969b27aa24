package headgate

// arena holds the logs of a shard outside the sight of the garbage collector:
// blocks of 4, 8, 16 … entries, each size in a slice of its own, with the free
// blocks of a size linked through their first entry.
type arena struct {
	blocks [arenaSizes][]entry
	free   [arenaSizes]uint64 // 1 + index of the first free block, 0: none
}

const (
	arenaSmallest = 4
	arenaSizes    = 15 // up to 65,536 entries
)

// block names a block: its size, and its place among those of that size. The
// zero block holds nothing.
type block uint64

func (b block) size() int  { return int(b>>56) - 1 }
func (b block) index() int { return int(b & (1<<56 - 1)) }

// entries is the room of b, of length 0 for the zero block.
func (a *arena) entries(b block) []entry {
	if b == 0 {
		return nil
	}
	room := arenaSmallest << b.size()
	start := b.index() * room
	return a.blocks[b.size()][start : start+room : start+room]
}

// alloc gives a block with room for n entries.
func (a *arena) alloc(n int) block {
	size := 0
	for arenaSmallest<<size < n {
		size++
	}
	name := block(size+1) << 56
	if head := a.free[size]; head != 0 {
		b := name | block(head-1)
		a.free[size] = uint64(a.entries(b)[0])
		return b
	}
	room := arenaSmallest << size
	index := len(a.blocks[size]) / room
	a.blocks[size] = append(a.blocks[size], make([]entry, room)...)
	return name | block(index)
}

// release gives b back.
func (a *arena) release(b block) {
	if b == 0 {
		return
	}
	a.entries(b)[0] = entry(a.free[b.size()])
	a.free[b.size()] = uint64(b.index()) + 1
}

// save writes log into b if it has room, else into a new block, and says where.
func (a *arena) save(b block, log []entry) block {
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
