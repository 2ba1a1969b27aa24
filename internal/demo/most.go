package demo

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// most finds the largest number of grants in any window of the limit's length. There the
// algorithms differ: a fixed window may grant twice its count around an edge, a sliding log never
// does.
//
// Only the store knows when exactly it decided. Seen from outside, that was between the request
// and the response. So grants count as in one window only if they certainly are, and the result is
// never too high.
type most struct {
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

func newMost(l headgate.Limit) *most {
	return &most{window: l.Period(), grain: l.Period() / 1000, bound: l.Capacity() + l.Refill()}
}

// add counts the grants among outcomes.
func (m *most) add(outcomes []outcome) {
	grants := slices.DeleteFunc(slices.Clone(outcomes), func(o outcome) bool { return !o.decision.Allowed() })
	slices.SortFunc(grants, func(a, b outcome) int { return a.from.Compare(b.from) })
	first := max(len(m.runs)-1, 0)
	for _, o := range grants {
		m.join(o)
	}
	for last := first; last < len(m.runs); last++ {
		m.found = max(m.found, m.ending(last))
	}
	m.forget()
}

// join adds a grant to the last run if it is close to its beginning, or else begins another run.
func (m *most) join(o outcome) {
	if n := len(m.runs); n > 0 && o.from.Sub(m.runs[n-1].from).Abs() <= m.grain {
		r := &m.runs[n-1]
		r.grants++
		if o.to.After(r.to) {
			r.to = o.to
		}
		if o.from.Before(r.from) {
			r.from = o.from
		}
		return
	}
	m.runs = append(m.runs, run{o.from, o.to, 1})
}

// ending returns how many grants were in the window that ends with the run last. A window includes
// its beginning and not its end, and stores count whole microseconds.
func (m *most) ending(last int) int64 {
	from, to, grants := m.runs[last].from, m.runs[last].to, int64(0)
	for i := last; i >= 0; i-- {
		if m.runs[i].from.Before(from) {
			from = m.runs[i].from
		}
		if m.runs[i].to.After(to) {
			to = m.runs[i].to
		}
		if to.Sub(from) >= m.window-time.Microsecond {
			break
		}
		grants += m.runs[i].grants
	}
	return grants
}

// forget drops the runs that no later window can reach.
func (m *most) forget() {
	keep := max(len(m.runs)-maxRuns, 0)
	for keep < len(m.runs)-1 && m.runs[len(m.runs)-1].from.Sub(m.runs[keep].from) > m.window {
		keep++
	}
	m.runs = slices.Delete(m.runs, 0, keep)
}
