package gate

import (
	"slices"
	"sort"
)

// ledger is how many tokens a process may use, and when: a step function of time, in nanoseconds
// of [nanos]. The value is never below 0, and 0 after the last step.
type ledger struct {
	free  int64 // the value before the first step
	steps []step
}

// step is a change of the value from a moment on.
type step struct{ at, change int64 }

// add adds n to the value from one moment until another.
func (l *ledger) add(from, until, n int64) {
	l.insert(step{from, n})
	l.insert(step{until, -n})
}

// insert merges steps of one moment, so that where one interval ends and another begins there
// is no gap.
func (l *ledger) insert(s step) {
	i := sort.Search(len(l.steps), func(i int) bool { return l.steps[i].at >= s.at })
	if i < len(l.steps) && l.steps[i].at == s.at {
		l.steps[i].change += s.change
		return
	}
	l.steps = slices.Insert(l.steps, i, s)
}

// forget drops the steps up to now.
func (l *ledger) forget(now int64) {
	past := 0
	for past < len(l.steps) && l.steps[past].at <= now {
		l.free += l.steps[past].change
		past++
	}
	l.steps = slices.Delete(l.steps, 0, past)
}

// earliest returns the first moment from now on at which n tokens are free for a whole span,
// if there is one. The steps up to now must have been forgotten.
func (l *ledger) earliest(now, n, span int64) (at int64, ok bool) {
	at, free := now, l.free
	ok = free >= n
	for _, s := range l.steps {
		if ok && s.at-at >= span {
			break
		}
		free += s.change
		if free >= n && !ok {
			at = s.at
		}
		ok = free >= n
	}
	return at, ok
}
