package httplimit

import (
	"container/list"
	"math/rand/v2"
	"slices"
	"testing"
)

func isFirst(place *list.Element) bool {
	select {
	case <-first(place):
		return true
	default:
		return false
	}
}

// Callers come and leave at random: the line is as a slice would be.
func TestPauseLines(t *testing.T) {
	var l pauseLines
	r := rand.New(rand.NewPCG(1, 2))
	var model []*list.Element // the first of them leads, by nil if it came first
	for step := range 20_000 {
		switch {
		case len(model) == 0 || r.IntN(100) < 49:
			w := l.join("k")
			if (w == nil) != (len(model) == 0) {
				t.Fatalf("step %d: %v joins %d", step, w, len(model))
			}
			model = append(model, w)
		case r.IntN(3) == 0:
			l.leave("k")
			model = model[1:]
		default: // as also the first may, if it has become that meanwhile
			i := r.IntN(len(model))
			if model[i] == nil {
				continue
			}
			l.giveUp("k", model[i])
			model = slices.Delete(model, i, i+1)
		}
		if l.busy("k") != (len(model) > 0) {
			t.Fatalf("step %d: busy is %t with %d in line", step, l.busy("k"), len(model))
		}
		for i, w := range model[:min(len(model), 3)] {
			if w != nil && isFirst(w) != (i == 0) {
				t.Fatalf("step %d: number %d is told that it is first: %t", step, i, isFirst(w))
			}
		}
	}
}
