package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// keyFormat makes the name of a key from its number; every name has keyWidth bytes.
const (
	keyFormat = "user:%08d"
	keyWidth  = 13
)

// addressWidth is the number of bytes of each name that addressed makes.
const addressWidth = len("10.100.100.100:40000")

// A Sequence is the keys of a workload in the order in which they are asked
// for, made before any clock starts. All names lie in one string, in that
// order: reading the next one costs nothing, and the garbage collector sees
// one object without pointers, so what it finds to do belongs to the contender.
type Sequence struct {
	names string
	width int
	ids   []uint32
}

// newSequence names the numbered keys.
func newSequence(ids []uint32) Sequence {
	var b strings.Builder
	b.Grow(len(ids) * keyWidth)
	for _, id := range ids {
		fmt.Fprintf(&b, keyFormat, id)
	}
	return Sequence{names: b.String(), width: keyWidth, ids: ids}
}

// addressed is s with the addresses of clients in place of its keys, for up to a million.
func (s Sequence) addressed() Sequence {
	var b strings.Builder
	b.Grow(len(s.ids) * addressWidth)
	for _, id := range s.ids {
		fmt.Fprintf(&b, "10.%d.%d.%d:40000", 100+id/10_000%100, 100+id/100%100, 100+id%100)
	}
	return Sequence{names: b.String(), width: addressWidth, ids: s.ids}
}

// Len is the number of takes in one pass.
func (s Sequence) Len() int { return len(s.ids) }

// Key is the key of take i.
func (s Sequence) Key(i int) string { return s.names[i*s.width : (i+1)*s.width] }

// repeatedKey asks for one key n times.
func repeatedKey(n int) Sequence { return newSequence(make([]uint32, n)) }

// shuffledKeys asks for each of n keys once, in random order.
func shuffledKeys(n int) Sequence {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(i)
	}
	random(keySeed).Shuffle(n, func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return newSequence(ids)
}

// zipfKeys draws n times among keys, the k-th most popular with a weight of
// (1+k)^-1.1.
func zipfKeys(n, keys int) Sequence {
	z := rand.NewZipf(random(keySeed), 1.1, 1, uint64(keys-1))
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = uint32(z.Uint64())
	}
	return newSequence(ids)
}

// The seeds of the order of the keys, of the order in which they come to be, and of the
// moments of a paced load.
const (
	keySeed  = 7
	warmSeed = 8
	paceSeed = 9
)

// random is the same source in every run, so that runs ask for the same keys.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(2, seed)) }

// distinct counts the different names of one pass, and how often the most
// frequent one occurs.
func (s Sequence) distinct() (keys, top int) {
	seen := make(map[string]int)
	for i := range s.Len() {
		k := s.Key(i)
		seen[k]++
		top = max(top, seen[k])
	}
	return len(seen), top
}
