package waitline

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type linkedNumber struct {
	Links[linkedNumber]
	n int
}

// TestList compares the list with a slice, in both directions, after random insertions and removals.
func TestList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var c List[linkedNumber, *linkedNumber]
	var model []*linkedNumber
	for step := range 20_000 {
		w := &linkedNumber{n: step}
		switch i := random.IntN(len(model) + 1); {
		case random.IntN(2) == 0 && i < len(model):
			c.Remove(model[i])
			model = slices.Delete(model, i, i+1)
		case random.IntN(2) == 0:
			c.Push(w)
			model = append(model, w)
		case i == 0:
			c.Insert(w, nil)
			model = slices.Insert(model, 0, w)
		default:
			c.Insert(w, model[i-1])
			model = slices.Insert(model, i, w)
		}
		var there, back []*linkedNumber
		for w := c.Head; w != nil; w = w.Next {
			there = append(there, w)
		}
		for w := c.Tail; w != nil; w = w.Prev {
			back = append(back, w)
		}
		slices.Reverse(back)
		if !slices.Equal(there, model) || !slices.Equal(back, model) {
			t.Fatalf("step %d: %d forwards, %d backwards, of %d", step, len(there), len(back), len(model))
		}
	}
}
