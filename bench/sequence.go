package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Sequence is the keys of a workload in the order of its takes, made before any clock starts. All
// keys are in one string in that order, so that neither the next key nor the garbage collector
// costs anything that would be charged to the contender.
type Sequence struct {
	text  string
	width int
}

// Len is the number of takes in one pass.
func (s Sequence) Len() int { return len(s.text) / s.width }

// Key is the key of take i.
func (s Sequence) Key(i int) string { return s.text[i*s.width : (i+1)*s.width] }

// keyOf and addressOf make the key of a number below a million, always of the same length.
func keyOf(n int) string { return fmt.Sprintf("user:%08d", n) }

func addressOf(n int) string {
	return fmt.Sprintf("10.%d.%d.%d:40000", 100+n/10_000, 100+n/100%100, 100+n%100)
}

// repeatedKey is one key n times.
func repeatedKey(n int, name func(int) string) Sequence {
	return Sequence{strings.Repeat(name(0), n), len(name(0))}
}

// shuffledKeys is each of n keys once, in an order that is the same in every run.
func shuffledKeys(n int, name func(int) string) Sequence {
	var b strings.Builder
	for _, i := range random(1).Perm(n) {
		b.WriteString(name(i))
	}
	return Sequence{b.String(), len(name(0))}
}

func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(2, seed)) }

// distinct counts the different keys.
func (s Sequence) distinct() int {
	seen := make(map[string]struct{})
	for i := range s.Len() {
		seen[s.Key(i)] = struct{}{}
	}
	return len(seen)
}
