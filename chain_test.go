package headgate

import (
	"math/rand/v2"
	"slices"
	"testing"
)

type linkedNumber struct {
	links[linkedNumber]
	n int
}

// A chain is what a slice is, both ways, however they come and go.
func TestChain(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var c chain[linkedNumber, *linkedNumber]
	var model []*linkedNumber
	for step := range 20_000 {
		w := &linkedNumber{n: step}
		switch i := random.IntN(len(model) + 1); {
		case random.IntN(2) == 0 && i < len(model):
			c.remove(model[i])
			model = slices.Delete(model, i, i+1)
		case random.IntN(2) == 0:
			c.push(w)
			model = append(model, w)
		case i == 0:
			c.insert(w, nil)
			model = slices.Insert(model, 0, w)
		default:
			c.insert(w, model[i-1])
			model = slices.Insert(model, i, w)
		}
		var there, back []*linkedNumber
		for w := c.head; w != nil; w = w.next {
			there = append(there, w)
		}
		for w := c.tail; w != nil; w = w.prev {
			back = append(back, w)
		}
		slices.Reverse(back)
		if !slices.Equal(there, model) || !slices.Equal(back, model) {
			t.Fatalf("step %d: %d forwards, %d backwards, of %d", step, len(there), len(back), len(model))
		}
	}
}
