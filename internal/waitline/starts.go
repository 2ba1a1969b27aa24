package waitline

import (
	"slices"
	"time"
)

// booking is a start that a caller has.
type booking struct {
	*caller

	due   time.Time // by the clock of this process
	start Start
}

// assign gives the start b to the caller that asked. If all that wait before it need as many
// tokens, or if it has left, the first of them gets it. If none can use it, it is cancelled.
func (l *line[K]) assign(b booking) {
	first := l.waiting.Head
	usable := first != nil && first.n == b.n && (first.by.IsZero() || !b.due.After(first.by))
	if l.waits(b.caller) {
		for c := range l.callers {
			if usable = usable && c.n == b.n; !usable || c == b.caller {
				break
			}
		}
	} else if last := len(l.booked) - 1; last >= 0 && l.booked[last].n != b.n {
		usable = usable && !l.booked[last].due.After(b.due)
	}
	if usable {
		if q := first.asking; q != nil && b.caller != first { // its answer is for the other now
			first.asking, b.asking, q.of = nil, q, b.caller
		}
		b.caller = first
	} else if !l.waits(b.caller) {
		l.cancel(b)
		return
	}
	l.book(b)
}

// book gives a caller a start. Callers with equal needs exchange their starts, so that they pass in
// the order in which they came.
func (l *line[K]) book(b booking) {
	l.remove(b.caller)
	i := len(l.booked)
	for ; i > 0 && l.booked[i-1].due.After(b.due); i-- {
		p, own := l.booked[i-1], b.start.At
		if p.n != b.n && !p.start.At.IsZero() && !own.IsZero() && !p.start.At.After(own) {
			b.due = p.due // its answer was faster than that of p
			break
		}
	}
	l.booked = slices.Insert(l.booked, i, b)
	for ; i+1 < len(l.booked) && l.booked[i+1].n == b.n && l.booked[i+1].place < b.place; i++ {
		l.booked[i].caller, l.booked[i+1].caller = l.booked[i+1].caller, b.caller
	}
}

// cancel gives a start that is ahead back to the store.
func (l *line[K]) cancel(b booking) {
	if b.start.At.IsZero() || !b.due.After(time.Now()) {
		return
	}
	// The head may be granted now what it was denied.
	l.last.known = false
	l.call(&call{b.caller}, b.store, func() error { return b.store.Cancel(b.start) }, func(error) {
		l.last.known = false
	})
}

// leave takes c out of the line, and reports false if it is out. Its start goes to the callers
// behind it that need as many tokens.
func (l *line[K]) leave(c *caller) bool {
	l.mu.Lock()
	i := slices.IndexFunc(l.booked, func(b booking) bool { return b.caller == c })
	switch {
	case c.out || i >= 0 && !time.Now().Before(l.booked[i].due):
		l.advance(time.Now())
		return false
	case i < 0:
		l.remove(c)
	default:
		for ; i+1 < len(l.booked) && l.booked[i+1].n == c.n; i++ {
			l.booked[i].caller = l.booked[i+1].caller
		}
		spare := l.booked[i]
		spare.caller = c
		if l.booked = slices.Delete(l.booked, i, i+1); i < len(l.booked) {
			l.cancel(spare)
		} else {
			l.assign(spare)
		}
	}
	c.out = true
	l.advance(time.Now())
	return true
}
