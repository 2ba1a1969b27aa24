package memtable

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
