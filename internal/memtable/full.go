package memtable

import "github.com/headgate/headgate/internal/algorithm"

// A full shard is one whose slots all belong to keys that are not in their initial state. New keys
// then share one slot for each limit: the overflow slot. When a key that was charged to it gets a
// slot of its own, it begins with all that the overflow slot has used: a flood gets no fresh
// budgets.

// overflow is the slot that new keys share under l.
func overflow(l *algorithm.Rule) uint64 {
	return l.Hash*0x9e3779b97f4a7c15 | 1<<idBits
}

func (t *slot) isOverflow(l *algorithm.Rule) bool { return (t.tag^overflow(l))>>idBits == 0 }

// shared returns the overflow slot of l if the key of hash h was charged to it, or nil.
func (s *Shard) shared(l *algorithm.Rule, h uint64) *slot {
	if s.overflows == 0 || !s.charged.has(h) {
		return nil
	}
	return s.find(overflow(l))
}

// Begins returns the slot whose account a key of hash h begins with: its own, or the overflow slot.
func (s *Shard) Begins(l *algorithm.Rule, h uint64) uint64 {
	if s.charged.has(h) && !s.Known(h) {
		return overflow(l)
	}
	return h
}

// filter is a Bloom filter of hashes in bounded space (B. H. Bloom, 1970, with two bits
// for each in 65,536). The zero filter is empty.
type filter []uint64

const filterWords = 1024

func (f *filter) add(h uint64) {
	if *f == nil {
		*f = make(filter, filterWords)
	}
	a, b := filterBits(h)
	(*f)[a>>6] |= 1 << (a & 63)
	(*f)[b>>6] |= 1 << (b & 63)
}

func (f *filter) has(h uint64) bool {
	if *f == nil {
		return false
	}
	a, b := filterBits(h)
	return (*f)[a>>6]&(1<<(a&63)) != 0 && (*f)[b>>6]&(1<<(b&63)) != 0
}

func filterBits(h uint64) (a, b uint16) { return uint16(h >> 16), uint16(h >> 32) }
