package waitline

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

const (
	patience = 16  // denials, after which a caller books its start however far ahead
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

	// What the store answered last: room tokens remain, or need tokens were denied until a time.
	room    int64
	denied  bool
	until   time.Time
	need    int64
	limit   *algorithm.Rule
	window  int64     // callers with equal needs that ask at once
	failed  time.Time // when it did not answer, or zero
	unheard bool      // the deadlines of some callers are not checked
}

type booking struct {
	*caller

	due    time.Time   // the start, by the clock of this process
	starts []time.Time // the same, by that of the store
}

type caller struct {
	Links[caller]

	n           int64
	by          time.Time // its deadline, or zero
	store       Store
	place       int64
	asking, out bool

	denials int
	ahead   time.Duration // how much farther ahead than others it may book

	done     chan struct{} // closed when it is out, unless it leaves
	err      error
	panicked any
}

// join adds c, unless it cannot pass before its deadline.
func (l *line) join(c *caller) {
	l.places++
	c.place = l.places
	l.waiting.Push(c)
	l.tokens += c.n
	if first := l.waiting.Head; !l.denied || first.n < l.need {
		l.unheard = true
	} else {
		l.refuse(c, l.tokens-first.n, time.Now())
	}
}

// advance does what can be done now, and unlocks. It was to happen at a time planned.
func (l *line) advance(planned time.Time) {
	for {
		now := time.Now()
		for len(l.booked) > 0 && !l.booked[0].due.After(now) {
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

// next returns the next caller that asks now, or else the time when there may be one. As many ask at
// once as pass within a trip, while their needs are equal so that they can exchange their starts; and
// as many as will be granted their tokens at once.
func (l *line) next(now time.Time) (c *caller, wake time.Time) {
	heads, tokens, equal := int64(0), int64(0), true
	for c := range l.callers {
		heads++
		tokens += c.n
		equal = equal && heads <= l.window && c.n == l.waiting.Head.n
		if heads > maxHeads || !equal && tokens > l.room {
			break
		}
		at := time.Time{}
		if l.denied && c.n >= l.need && (c.denials < patience || l.polls) {
			at = l.until.Add(-l.lead() - c.ahead)
		}
		switch {
		case c.asking:
		case !now.Before(at):
			return c, at
		case wake.IsZero() || at.Before(wake):
			wake = at
		}
	}
	return nil, wake
}

// lead is how far ahead a caller may book its start: two trips, so that the next start can be booked
// before that one comes.
func (l *line) lead() time.Duration {
	if l.polls {
		return 0
	}
	return (2 * l.trip).Truncate(time.Microsecond)
}

// schedule sets the timer to wake, or to the first start if that comes sooner.
func (l *line) schedule(wake time.Time) {
	if len(l.booked) > 0 && (wake.IsZero() || l.booked[0].due.Before(wake)) {
		wake = l.booked[0].due
	}
	if wake.Equal(l.rings) {
		return
	}
	if l.rings = wake; l.timer != nil {
		l.timer.Stop()
	}
	if !wake.IsZero() {
		l.timer = time.AfterFunc(time.Until(wake), func() {
			l.mu.Lock()
			l.rings = time.Time{}
			l.advance(wake)
		})
	}
}

var errEnded = errors.New("headgate: the store ended the goroutine")

// ask asks the store for a start of c. With each denial, a caller may book a little farther ahead than
// before: so processes take turns, and large needs are met in the end.
func (l *line) ask(c *caller, planned time.Time) {
	wait := l.lead() + c.ahead
	if c.denials >= patience && !l.polls {
		wait = math.MaxInt64
	}
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
			c.panicked = panicked
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
	if took := now.Sub(planned); took > l.trip {
		l.trip = min(took, 2*l.trip+time.Millisecond) // one slow answer says little
	} else {
		l.trip -= (l.trip - took) / 16
	}
	switch {
	case err != nil:
		l.fail(c, err, a.Invalid, planned)
		return
	case a.Granted:
		l.grant(c, a, now)
	default:
		l.deny(c, a, now)
	}
	l.polls, l.failed = l.polls || a.Polls, time.Time{}
}

// fail ends c. If the store does not answer the next call, either, all callers end: each might have
// to wait for an error of its own.
func (l *line) fail(c *caller, err error, invalid bool, planned time.Time) {
	l.denied = false
	l.end(c, err)
	switch {
	case invalid || c.panicked != nil:
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
	l.denied, l.room = false, 0
	if a.Wait == 0 {
		l.room = a.Left
	}
	l.window = int64(l.lead()/max(a.Each, time.Microsecond)) + 1
	l.assign(booking{c, now.Add(a.Wait), a.Starts})
}

// deny notes that c was denied, and ends the callers that cannot pass before their deadlines.
func (l *line) deny(c *caller, a Answer, now time.Time) {
	until := now.Add(a.Wait)
	known := !l.unheard && !until.After(l.until.Add(l.lead()+l.limit.Least(l.need, c.n)))
	l.denied, l.room, l.until, l.need, l.limit = true, 0, until, c.n, a.Limit
	if c.denials++; a.Paused {
		l.until, c.denials = until.Add(l.lead()), 0
	}
	if c.ahead = 0; c.denials > 1 && !l.polls {
		c.ahead = (a.Wait / 64 * time.Duration(c.denials-1)).Truncate(time.Microsecond)
	}
	if !l.refuse(c, 0, now) && known {
		return // the callers behind wait no longer than they would have
	}
	if l.unheard = l.calls > 0; l.unheard {
		return // others may be granted what they asked for
	}
	behind := int64(0) // tokens after those of the first caller
	for c := range l.callers {
		more := c.n
		if first := l.waiting.Head; first.n < l.need {
			return
		} else if first == c {
			more = 0
		}
		if !l.refuse(c, behind+more, now) {
			behind += more
		}
	}
}

// refuse ends c if it cannot pass before its deadline: so many tokens more, its own included, are
// needed after those that were denied.
func (l *line) refuse(c *caller, more int64, now time.Time) bool {
	start := l.until.Add(l.limit.Least(l.need, more))
	if c.by.IsZero() || !start.After(c.by) || c.asking {
		return false
	}
	return l.end(c, c.store.Late(l.limit, start.Sub(now)))
}

// assign gives the start b to the caller that asked. If all that wait before it need as many tokens,
// or if it has left, the first of them gets it. If none can use it, it is cancelled.
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
		if p.n != b.n && p.starts != nil && b.starts != nil && !p.starts[0].After(b.starts[0]) {
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
	if b.starts == nil || !b.due.After(time.Now()) {
		return
	}
	l.denied = false // the head may be granted now what it was denied
	if b.store.Inline() {
		b.store.Cancel(b.starts)
		return
	}
	l.calls++
	go func() {
		b.store.Cancel(b.starts)
		l.mu.Lock()
		l.calls--
		l.denied = false
		l.advance(time.Now())
	}()
}

// leave takes c out of the line, and reports false if it is out. Its start goes to the callers behind
// it that need as many tokens.
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
func (l *line) waits(c *caller) bool { return c.Prev != nil || c.Next != nil || l.waiting.Head == c }

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
