package headgate

import "sort"

// passes are the tokens that passed a [Gate] in the last period, in the order in
// which they were recorded, in a ring that grows as it is needed. Positions count
// on for ever, and wrap around.
type passes struct {
	ring  []pass // as long as a power of two, or nil
	first uint32 // position of the oldest
	end   uint32 // position after the latest
	gone  uint64 // tokens of those before first, ever; wraps around
}

// pass is when tokens passed, and how many have up to then, ever.
type pass struct {
	at   int64
	upto uint64
}

const (
	ringLeast = 4
	ringKept  = 64 // entries that an empty ring keeps

	// From this many entries on, what passes within this fraction of a period
	// is one entry, at the later time: no ring has more than four times as many, and
	// what is lost is less than 1 in 65,536.
	ringFine = 1 << 16
)

func (p *passes) slot(i uint32) *pass { return &p.ring[i&uint32(len(p.ring)-1)] }

// held is how many tokens are recorded.
func (p *passes) held() int64 {
	if p.first == p.end {
		return 0
	}
	return int64(p.slot(p.end-1).upto - p.gone)
}

// record adds n tokens that passed at that time, or at the latest time recorded if
// that is later, and returns the position of the entry that holds them.
func (p *passes) record(at, n, period int64) uint32 {
	upto := p.gone + uint64(n)
	if p.first != p.end {
		last := p.slot(p.end - 1)
		at = max(at, last.at)
		upto = last.upto + uint64(n)
		if at == last.at || p.crowded(at, period) {
			*last = pass{at, upto}
			return p.end - 1
		}
	}
	if int(p.end-p.first) == len(p.ring) {
		p.grow()
	}
	*p.slot(p.end) = pass{at, upto}
	p.end++
	return p.end - 1
}

// crowded says whether the latest entry is to take in what passes at that time, of
// many that are close together.
func (p *passes) crowded(at, period int64) bool {
	return p.end-p.first >= ringFine && at-p.slot(p.end-2).at < period/ringFine
}

// postpone moves n tokens of the entry at position i to a later time, as if they
// had passed only then. If that entry is gone, they are counted anew.
func (p *passes) postpone(i uint32, at, n, period int64) uint32 {
	if i == p.end-1 && p.first != p.end {
		last := p.slot(i)
		last.at = max(at, last.at)
		return i
	}
	if i-p.first < p.end-p.first {
		for ; i != p.end; i++ {
			p.slot(i).upto -= uint64(n)
		}
	}
	return p.record(at, n, period)
}

// forget drops what passed a period ago.
func (p *passes) forget(now, period int64) {
	for p.first != p.end {
		oldest := p.slot(p.first)
		if now-oldest.at < period {
			return
		}
		p.gone = oldest.upto
		p.first++
	}
	if len(p.ring) > ringKept {
		p.ring = nil
	}
}

// passedAt is when the nth token of those held passed, counted from the oldest.
func (p *passes) passedAt(n int64) int64 {
	i := sort.Search(int(p.end-p.first), func(i int) bool {
		return p.slot(p.first+uint32(i)).upto-p.gone >= uint64(n)
	})
	return p.slot(p.first + uint32(i)).at
}

func (p *passes) grow() {
	old := *p
	p.ring = make([]pass, max(2*len(p.ring), ringLeast))
	for i := p.first; i != p.end; i++ {
		*p.slot(i) = *old.slot(i)
	}
}
