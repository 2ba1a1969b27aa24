package gate

import "sort"

// history holds the tokens that passed a [Gate] in the last period, in the order in which
// they were recorded, in a ring that grows when needed. Positions only grow, and wrap around.
type history struct {
	ring  []pass // as long as a power of two, or nil
	first uint32 // position of the oldest
	end   uint32 // position after the latest
	gone  uint64 // tokens of those before first, ever; wraps around
}

// pass is when tokens passed, and how many have passed up to then, ever.
type pass struct {
	at   int64
	upto uint64
}

const (
	minRing      = 4
	maxEmptyRing = 64 // entries that an empty ring keeps

	// From this many entries on, what passes within this fraction of a period is one
	// entry, at the later time: no ring has more than four times as many, and less
	// than 1 in 65,536 of the rate is lost.
	fineRing = 1 << 16
)

func (h *history) slot(i uint32) *pass { return &h.ring[i&uint32(len(h.ring)-1)] }

func (h *history) used() int64 {
	if h.first == h.end {
		return 0
	}
	return int64(h.slot(h.end-1).upto - h.gone)
}

// record adds n tokens that passed at that time, or at the latest time recorded if
// that is later, and returns the position of the entry that holds them.
func (h *history) record(at, n, period int64) uint32 {
	upto := h.gone + uint64(n)
	if h.first != h.end {
		last := h.slot(h.end - 1)
		at = max(at, last.at)
		upto = last.upto + uint64(n)
		if at == last.at || h.crowded(at, period) {
			*last = pass{at, upto}
			return h.end - 1
		}
	}
	if int(h.end-h.first) == len(h.ring) {
		h.grow()
	}
	*h.slot(h.end) = pass{at, upto}
	h.end++
	return h.end - 1
}

// crowded reports whether the latest entry is to hold what passes at that time, too.
func (h *history) crowded(at, period int64) bool {
	return h.end-h.first >= fineRing && at-h.slot(h.end-2).at < period/fineRing
}

// postpone moves n tokens of the entry at position i to a later time, as if they had passed
// only then. If that entry has been forgotten, they are recorded again.
func (h *history) postpone(i uint32, at, n, period int64) uint32 {
	if i == h.end-1 && h.first != h.end {
		last := h.slot(i)
		last.at = max(at, last.at)
		return i
	}
	if i-h.first < h.end-h.first {
		for ; i != h.end; i++ {
			h.slot(i).upto -= uint64(n)
		}
	}
	return h.record(at, n, period)
}

// forget drops what passed a period ago.
func (h *history) forget(now, period int64) {
	for h.first != h.end {
		oldest := h.slot(h.first)
		if now-oldest.at < period {
			return
		}
		h.gone = oldest.upto
		h.first++
	}
	if len(h.ring) > maxEmptyRing {
		h.ring = nil
	}
}

// passedAt returns when the nth of the tokens used passed, counted from the oldest.
func (h *history) passedAt(n int64) int64 {
	i := sort.Search(int(h.end-h.first), func(i int) bool {
		return h.slot(h.first+uint32(i)).upto-h.gone >= uint64(n)
	})
	return h.slot(h.first + uint32(i)).at
}

func (h *history) grow() {
	old := *h
	h.ring = make([]pass, max(2*len(h.ring), minRing))
	for i := h.first; i != h.end; i++ {
		*h.slot(i) = *old.slot(i)
	}
}
