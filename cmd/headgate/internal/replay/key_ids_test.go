package replay

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// The most denied keys are those of a sort of all.
func TestMostDenied(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		names := newKeyIDs()
		l := &trial{}
		var all []deniedKey
		for i := range r.IntN(60) {
			id := names.id(fmt.Appendf(nil, "%d-%d", r.IntN(9), i))
			if n := r.IntN(4); n > 0 {
				for range n {
					l.deny(id)
				}
				all = append(all, deniedKey{id, int64(n)})
			}
		}
		slices.SortFunc(all, func(a, b deniedKey) int {
			return cmp.Or(cmp.Compare(b.denied, a.denied), cmp.Compare(names.keys[a.key], names.keys[b.key]))
		})
		for _, n := range []int{0, 1, 2, 5, 100, math.MaxInt} {
			keys := names.mostDenied(n, l.deniedKeys)
			if l.keys != int64(len(all)) || !slices.Equal(keys, all[:min(n, len(all))]) {
				t.Fatalf("%d of %d: %v, want %v", n, l.keys, keys, all)
			}
		}
	}
}
