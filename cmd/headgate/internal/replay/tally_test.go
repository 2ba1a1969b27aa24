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
		names := newNames()
		l := &trial{}
		var all []uint32
		for i := range r.IntN(60) {
			id := names.id(fmt.Appendf(nil, "%d-%d", r.IntN(9), i))
			if n := int64(r.IntN(4)); n > 0 {
				l.denied = grown(l.denied, id)
				l.denied[id] = n
				all = append(all, id)
			}
		}
		slices.SortFunc(all, func(a, b uint32) int {
			return cmp.Or(cmp.Compare(l.denied[b], l.denied[a]), cmp.Compare(names.keys[a], names.keys[b]))
		})
		for _, n := range []int{0, 1, 2, 5, 100, math.MaxInt} {
			ids, total := l.mostDenied(names, n)
			if total != int64(len(all)) || !slices.Equal(ids, all[:min(n, len(all))]) {
				t.Fatalf("%d of %d: %v, want %v", n, total, ids, all)
			}
		}
	}
}
