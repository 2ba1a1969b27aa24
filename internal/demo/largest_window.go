package demo

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// largestWindow finds the largest number of grants in any window of the limit's length. There the
// algorithms differ: a fixed window may grant twice its count around an edge, a sliding log never
// does.
//
// Only the store knows when exactly it decided. Seen from outside, that was between the request
// and the response. So grants count as in one window only if they certainly are, and the result is
// never too high.
type largestWindow struct {
	window time.Duration
	grain  time.Duration
	bound  int64 // the most that the limit allows
	found  int64
	runs   []run // of the last window
}

// run is a group of grants at nearly the same time.
type run struct {
	from, to time.Time
	grants   int64
}

// maxRuns bounds the runs that are kept. A run is a thousandth of a window, so there are not more
// unless a store is very slow.
const maxRuns = 4096

func newLargestWindow(l headgate.Limit) *largestWindow {
	return &largestWindow{
		window: l.Period(), grain: l.Period() / 1000, bound: l.Capacity() + l.Refill(),
	}
}

// add counts the grants among outcomes.
func (w *largestWindow) add(outcomes []outcome) {
	denied := func(o outcome) bool { return !o.decision.Allowed() }
	grants := slices.DeleteFunc(slices.Clone(outcomes), denied)
	slices.SortFunc(grants, func(a, b outcome) int { return a.from.Compare(b.from) })
	first := max(len(w.runs)-1, 0)
	for _, o := range grants {
		w.join(o)
	}
	for last := first; last < len(w.runs); last++ {
		w.found = max(w.found, w.ending(last))
	}
	w.forget()
}

// join adds a grant to the last run if it is close to its beginning, or else begins another run.
func (w *largestWindow) join(o outcome) {
	if n := len(w.runs); n > 0 && o.from.Sub(w.runs[n-1].from).Abs() <= w.grain {
		r := &w.runs[n-1]
		r.grants++
		if o.to.After(r.to) {
			r.to = o.to
		}
		if o.from.Before(r.from) {
			r.from = o.from
		}
		return
	}
	w.runs = append(w.runs, run{o.from, o.to, 1})
}

// ending returns how many grants were in the window that ends with the run last. A window includes
// its beginning and not its end, and stores count whole microseconds.
func (w *largestWindow) ending(last int) int64 {
	from, to, grants := w.runs[last].from, w.runs[last].to, int64(0)
	for i := last; i >= 0; i-- {
		if w.runs[i].from.Before(from) {
			from = w.runs[i].from
		}
		if w.runs[i].to.After(to) {
			to = w.runs[i].to
		}
		if to.Sub(from) >= w.window-time.Microsecond {
			break
		}
		grants += w.runs[i].grants
	}
	return grants
}

// forget drops the runs that no later window can reach.
func (w *largestWindow) forget() {
	keep := max(len(w.runs)-maxRuns, 0)
	for keep < len(w.runs)-1 && w.runs[len(w.runs)-1].from.Sub(w.runs[keep].from) > w.window {
		keep++
	}
	w.runs = slices.Delete(w.runs, 0, keep)
}
