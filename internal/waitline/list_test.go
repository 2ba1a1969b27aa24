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

// TestList compares the list with a slice, in both directions, after random pushes and removals.
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
		default:
			c.Push(w)
			model = append(model, w)
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
			t.Fatalf("step %d: %d forwards, %d backwards, of %d", step, len(there), len(back),
				len(model))
		}
	}
}
