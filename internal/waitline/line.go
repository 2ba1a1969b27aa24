package waitline

import (
	"cmp"
	"errors"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

const (
	patience = 16  // denials, after which a caller books its start however far ahead
	maxLeads = 4   // denials that each let a caller book a lead farther ahead
	maxHeads = 256 // callers of a line that ask at once
)

// line is the callers of one line. Each has a start, or waits for one.
type line struct {
	*lines

	drop    func()
	booked  []booking // in the order of the starts
	waiting List[caller, *caller]
	tokens  int64 // that those who wait need
	places  int64 // that were ever taken
	calls   int   // of the store, under way
	timer   *time.Timer
	rings   time.Time // or zero

	// What the store answered last: how many tokens remain, or else until when it has granted or
	// denied some, and how many.
	room    int64
	known   bool
	granted bool
	until   time.Time
	some    int64
	limit   *algorithm.Rule
	failed  time.Time // when it did not answer, or zero
}

type booking struct {
	*caller

	due   time.Time // the start, by the clock of this process
	start time.Time // the same, by that of the store, or zero
}

type caller struct {
	Links[caller]

	n           int64
	by          time.Time // its deadline, or zero
	store       Store
	place       int64
	asking, out bool

	denials int
	wait    time.Duration // when it was denied last

	done     chan struct{} // closed when it is out, unless it leaves
	start    time.Time
	err      error
	panicked any
}

// join adds c, unless it cannot pass before its deadline.
func (l *line) join(c *caller) {
	l.places++
	c.place = l.places
	l.waiting.Push(c)
	l.tokens += c.n
	l.refuse(c, l.tokens-c.n, time.Now())
}

// bounds reports whether the last answer bounds when callers can pass.
func (l *line) bounds() bool {
	return l.known && l.waiting.Head != nil && (l.granted || l.waiting.Head.n >= l.some)
}

// earliest returns when c can start at the earliest, if others that wait before it need so many
// tokens.
func (l *line) earliest(c *caller, before int64) time.Time {
	if !l.granted {
		before -= l.waiting.Head.n // as many as were denied, or more
	}
	return l.until.Add(l.limit.Least(l.some, before+c.n))
}

// advance does what can be done now, and unlocks. It was to happen at a time planned.
func (l *line) advance(planned time.Time) {
	for {
		now := time.Now()
		for len(l.booked) > 0 && !l.booked[0].due.After(now) {
			l.booked[0].caller.start = l.booked[0].start
			l.finish(l.booked[0].caller, nil)
			l.booked = l.booked[1:]
		}
		c, wake := l.next(now)
		if c == nil {
			l.schedule(wake)
			break
		}
		l.ask(c, planned)
	}
	if l.drop != nil && len(l.booked)+l.calls == 0 && l.waiting.Head == nil {
		l.drop()
		l.drop = nil
	}
	l.mu.Unlock()
}

// next returns the next caller that asks now, or else the time when there may be one. Several ask
// at once if they can pass soon, while their needs are equal so that they can exchange their
// starts; and all that will be granted their tokens at once.
func (l *line) next(now time.Time) (c *caller, wake time.Time) {
	bounds, equal, heads, before := l.bounds(), true, 0, int64(0)
	for c := range l.callers {
		equal = equal && c.n == l.waiting.Head.n && (heads == 0 || bounds)
		if heads == maxHeads || !equal && before+c.n > l.room {
			break
		}
		at := time.Time{}
		if lead := l.lead(c); bounds && lead < math.MaxInt64 {
			at = l.earliest(c, before).Add(-lead)
		}
		switch {
		case c.asking:
		case !now.Before(at):
			return c, at
		case wake.IsZero() || at.Before(wake):
			wake = at
		}
		heads++
		before += c.n
	}
	return nil, wake
}

// lead returns how far ahead c may book its start: far enough that the answer comes before the
// start. It is 1.5 to 3 trips, a power of two, so that processes as far from the store book as far
// ahead. For each denial it is longer, so that processes take turns, and large needs are met.
func (l *line) lead(c *caller) time.Duration {
	switch {
	case l.polls:
		return 0
	case c.denials >= patience:
		return math.MaxInt64
	}
	lead, waits := time.Duration(0), max(c.denials-1, 0)
	if l.trip > 0 {
		lead = time.Microsecond << bits.Len64(uint64(l.trip.Microseconds()*3/2))
	}
	lead *= time.Duration(min(c.denials, maxLeads) + 1)
	return lead + (c.wait / 64 * time.Duration(waits)).Truncate(time.Microsecond)
}

// schedule sets the timer to wake, or to the first start if that comes sooner.
func (l *line) schedule(wake time.Time) {
	if len(l.booked) > 0 && (wake.IsZero() || l.booked[0].due.Before(wake)) {
		wake = l.booked[0].due
	}
	switch {
	case wake.Equal(l.rings):
	case wake.IsZero():
		l.timer.Stop()
	case l.timer == nil:
		l.timer = time.AfterFunc(time.Until(wake), l.ring)
	default:
		l.timer.Reset(time.Until(wake))
	}
	l.rings = wake
}

func (l *line) ring() {
	l.mu.Lock()
	planned := l.rings
	if now := time.Now(); planned.IsZero() || planned.After(now) {
		planned = now // it was set anew meanwhile
	}
	l.rings = time.Time{}
	l.advance(planned)
}

var errEnded = errors.New("headgate: the store ended the goroutine")

// ask asks the store for a start of c.
func (l *line) ask(c *caller, planned time.Time) {
	wait := l.lead(c)
	if !c.by.IsZero() {
		wait = min(wait, max(time.Until(c.by), 0))
	}
	c.asking = true
	l.calls++
	if c.store.Inline() {
		a, err := c.store.Ask(wait)
		l.answered(c, a, err, planned)
		return
	}
	go func() {
		var a Answer
		err := errEnded
		defer func() {
			panicked := recover()
			l.mu.Lock()
			if l.waits(c) {
				c.panicked = panicked
			}
			l.answered(c, a, err, planned)
			l.advance(time.Now())
		}()
		a, err = c.store.Ask(wait)
	}()
}

func (l *line) answered(c *caller, a Answer, err error, planned time.Time) {
	now := time.Now()
	c.asking = false
	l.calls--
	if err != nil {
		l.fail(c, err, a.Invalid, planned)
		return
	}
	if longer := now.Sub(planned) - l.trip; longer > 0 {
		l.trip += longer / 2
	} else {
		l.trip += longer / 16
	}
	l.polls, l.failed = l.polls || a.Polls, time.Time{}
	if a.Granted {
		l.grant(c, a, now)
	} else {
		l.deny(c, a, now)
	}
}

// fail ends c. If the store does not answer the next call, either, all callers end: each might have
// to wait for an error of its own.
func (l *line) fail(c *caller, err error, invalid bool, planned time.Time) {
	l.known = false
	l.end(c, err)
	switch {
	case invalid || errors.Is(err, errEnded):
	case l.failed.IsZero():
		l.failed = time.Now()
	case planned.After(l.failed):
		for c := range l.callers {
			if !c.asking {
				l.end(c, err)
			}
		}
	}
}

// grant gives a start that c was granted to a caller.
func (l *line) grant(c *caller, a Answer, now time.Time) {
	due := now.Add(a.Wait)
	later := l.known && l.granted && l.until.After(due) // another answer
	l.room, l.limit = a.Left, cmp.Or(a.Limit, l.limit)
	if a.Wait > 0 {
		l.room = 0
	}
	if l.known = l.limit != nil && l.room == 0; l.known && !later {
		l.granted, l.until, l.some = a.Wait > 0, due, c.n
	}
	l.assign(booking{c, due, a.Start})
}

// deny notes that c was denied, and ends the callers that cannot pass before their deadlines.
func (l *line) deny(c *caller, a Answer, now time.Time) {
	until := now.Add(a.Wait)
	l.known, l.granted, l.room, l.until, l.some, l.limit = true, false, 0, until, c.n, a.Limit
	c.denials, c.wait = c.denials+1, a.Wait
	if a.Paused {
		c.denials = 0
		l.until = until.Add(l.lead(c)) // it asks when the wait is over, and not before
	}
	l.refuse(c, 0, now)
	if l.calls > 0 {
		return // others may have been granted what they asked for
	}
	before := int64(0)
	for c := range l.callers {
		if !l.refuse(c, before, now) {
			before += c.n
		}
	}
}

// refuse ends c if it cannot pass before its deadline.
func (l *line) refuse(c *caller, before int64, now time.Time) bool {
	if c.by.IsZero() || c.asking || !l.bounds() {
		return false
	}
	start := l.earliest(c, before)
	return start.After(c.by) && l.end(c, c.store.Late(l.limit, start.Sub(now)))
}

// assign gives the start b to the caller that asked. If all that wait before it need as many
// tokens, or if it has left, the first of them gets it. If none can use it, it is cancelled.
func (l *line) assign(b booking) {
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
		b.caller = first
	} else if !l.waits(b.caller) {
		l.cancel(b)
		return
	}
	l.book(b)
}

// book gives a caller a start. Callers with equal needs exchange their starts, so that they pass in
// the order in which they came.
func (l *line) book(b booking) {
	l.remove(b.caller)
	i := len(l.booked)
	for ; i > 0 && l.booked[i-1].due.After(b.due); i-- {
		p := l.booked[i-1]
		if p.n != b.n && !p.start.IsZero() && !b.start.IsZero() && !p.start.After(b.start) {
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
func (l *line) cancel(b booking) {
	if b.start.IsZero() || !b.due.After(time.Now()) {
		return
	}
	l.known = false // the head may be granted now what it was denied
	if b.store.Inline() {
		_ = b.store.Cancel(b.start)
		return
	}
	l.calls++
	go func() {
		_ = b.store.Cancel(b.start)
		l.mu.Lock()
		l.calls--
		l.known = false
		l.advance(time.Now())
	}()
}

// leave takes c out of the line, and reports false if it is out. Its start goes to the callers
// behind it that need as many tokens.
func (l *line) leave(c *caller) bool {
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

// callers yields the callers that wait for a start. The loop may end them.
func (l *line) callers(yield func(*caller) bool) {
	for c := l.waiting.Head; c != nil; {
		next := c.Next
		if !yield(c) {
			return
		}
		c = next
	}
}

// waits reports whether c is neither out nor booked.
func (l *line) waits(c *caller) bool {
	return c.Prev != nil || c.Next != nil || l.waiting.Head == c
}

// end ends c with an error, if it waits.
func (l *line) end(c *caller, err error) bool {
	if !l.waits(c) {
		return false
	}
	l.remove(c)
	l.finish(c, err)
	return true
}

func (l *line) finish(c *caller, err error) {
	c.out, c.err = true, err
	close(c.done)
}

func (l *line) remove(c *caller) {
	l.waiting.Remove(c)
	l.tokens -= c.n
}
