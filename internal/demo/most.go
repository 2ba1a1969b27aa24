package demo

import (
	"slices"
	"time"

	"github.com/headgate/headgate"
)

// most finds out how much a limit has granted in any window of its length, wherever
// that window begins. That is where algorithms differ: a fixed window may grant
// twice its count around an edge, a sliding log never does.
//
// Only the store knows when exactly it decided. From outside, a decision was made
// at some time between the question and the answer, so grants count as being in
// one window only if they are in it for certain. What is found is never too high.
type most struct {
	window time.Duration
	grain  time.Duration
	bound  int64 // what the limit promises at most
	found  int64
	runs   []run // of the last window
}

// run is grants that came closely one after the other.
type run struct {
	from, to time.Time
	grants   int64
}

// maxRuns bounds what is remembered. A thousandth of a window is one run, so there
// are no more of them unless a store is very slow.
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

// join adds a grant to the last run if it is close to its beginning, or begins
// another one.
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

// ending is how many grants were in a window that ends with the run last. A window
// holds its beginning and not its end, and stores count whole microseconds.
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
