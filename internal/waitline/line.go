package waitline

import (
	"math"
	"math/bits"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

const (
	patience = 16  // denials, after which a head books its start however far ahead
	maxLeads = 4   // denials that each let a caller book a lead farther ahead
	maxHeads = 256 // callers of a line that ask at once
)

// line is the callers of one line. Each has a start, or waits for one.
type line[K comparable] struct {
	*Lines[K]

	key     K
	booked  []booking // in the order of the starts
	waiting List[caller, *caller]
	tokens  int64 // that those who wait need
	places  int64 // that were ever taken
	timed   int   // of those who wait: with a deadline
	unsure  bool  // whether some of those can pass in time
	timer   *time.Timer
	rings   time.Time // or zero

	calls  int // of the store, under way
	last   answer
	room   int64     // tokens that remained
	paused answer    // the last pause; nobody asks before its end
	failed time.Time // when the store did not answer, or zero
	polls  bool      // the store does not book ahead
}

// answer is the time until which the store has denied n tokens, or of a start that it has granted.
type answer struct {
	until time.Time
	n     int64
	limit *algorithm.Rule
	ahead bool // it is a start that was ahead: the next one is later
	known bool
}

type caller struct {
	Links[caller]

	n      int64
	by     time.Time // its deadline, or zero
	store  Store
	place  int64
	asking *call // or nil
	out    bool

	denials int
	wait    time.Duration // when it was denied last

	done     chan struct{} // closed when it is out, unless it leaves
	start    Start
	err      error
	panicked any
}

// join adds c, unless it cannot pass before its deadline.
func (l *line[K]) join(c *caller) {
	l.places++
	c.place = l.places
	l.waiting.Push(c)
	l.tokens += c.n
	if !c.by.IsZero() {
		l.timed++
		l.unsure = l.unsure || l.calls > 0
		l.refuse(c, l.tokens-c.n, time.Now())
	}
}

// bounds reports whether the last answer bounds when callers can pass.
func (l *line[K]) bounds() bool {
	return l.last.known && l.waiting.Head != nil && (l.last.ahead || l.waiting.Head.n >= l.last.n)
}

// advance does what can be done now, and unlocks. It was to happen at a time planned.
func (l *line[K]) advance(planned time.Time) {
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
	if len(l.booked)+l.calls == 0 && l.waiting.Head == nil {
		l.drop(l)
	}
	l.mu.Unlock()
}

// next returns the next caller that asks now, or else the time when there may be one. Several ask
// at once if, at the rate of the limit, they can pass soon, while their needs are equal so that
// they can exchange their starts; and all that will be granted their tokens at once.
func (l *line[K]) next(now time.Time) (c *caller, wake time.Time) {
	if l.waiting.Head != nil && l.paused.until.After(now) {
		return nil, l.paused.until
	}
	bounds, equal, heads, before := l.bounds(), true, 0, int64(0)
	for c := range l.callers {
		equal = equal && c.n == l.waiting.Head.n && (heads == 0 || bounds)
		books := c.denials >= patience && heads > 0 // when it is the head
		if heads == maxHeads || books || !equal && before+c.n > l.room {
			break
		}
		if lead := l.lead(c); bounds && lead < math.MaxInt64 {
			more := before
			if l.last.ahead {
				more += c.n
			}
			if at := l.last.until.Add(l.last.limit.Flow(more) - lead); now.Before(at) {
				return nil, at
			}
		}
		if c.asking == nil {
			return c, time.Time{}
		}
		heads++
		before += c.n
	}
	return nil, time.Time{}
}

// lead returns how far ahead c may book its start: far enough that the answer comes before the
// start. It is 1.5 to 3 trips, a power of two, so that processes as far from the store book as far
// ahead. For each denial it is longer, so that processes take turns, and large needs are met.
func (l *line[K]) lead(c *caller) time.Duration {
	switch {
	case l.polls:
		return 0
	case c.denials >= patience:
		return math.MaxInt64
	}
	lead, waits := time.Duration(0), max(c.denials-1, 0)
	if l.trip > 0 { // a store in this process may answer at once
		lead = time.Microsecond << bits.Len64(uint64(l.trip.Microseconds()*3/2))
	}
	lead *= time.Duration(min(c.denials, maxLeads) + 1)
	return lead + (c.wait / 64 * time.Duration(waits)).Truncate(time.Microsecond)
}

// schedule sets the timer to wake, or to the first start if that comes sooner.
func (l *line[K]) schedule(wake time.Time) {
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

func (l *line[K]) ring() {
	l.mu.Lock()
	planned := l.rings
	if now := time.Now(); planned.IsZero() || planned.After(now) {
		planned = now // it was set anew meanwhile
	}
	l.rings = time.Time{}
	l.advance(planned)
}

// refuse ends c if it cannot pass before its deadline, while others that wait before it need so
// many tokens. What the store does not answer yet may move the bound.
func (l *line[K]) refuse(c *caller, before int64, now time.Time) bool {
	if c.by.IsZero() || c.asking != nil || l.calls > 0 {
		return false
	}
	limit, start := l.paused.limit, l.paused.until
	if !start.After(now) {
		if !l.bounds() {
			return false
		}
		limit, start = l.last.limit, l.earliest(c, before)
	}
	return start.After(c.by) && l.end(c, c.store.Late(limit, start.Sub(now)))
}

// earliest returns when c can start at the earliest, while others that wait before it need so many
// tokens. When the last denial ends, the head gets its tokens, and no more are there.
func (l *line[K]) earliest(c *caller, before int64) time.Time {
	if !l.last.ahead {
		before -= l.waiting.Head.n
	}
	return l.last.until.Add(l.last.limit.Least(l.last.n, before+c.n))
}

// refuseAll ends the callers that cannot pass before their deadlines.
func (l *line[K]) refuseAll(now time.Time) {
	if l.unsure = l.timed > 0 && l.calls > 0; l.unsure || l.timed == 0 {
		return
	}
	before := int64(0)
	for c := range l.callers {
		if !l.refuse(c, before, now) {
			before += c.n
		}
	}
}

// callers yields the callers that wait for a start. The loop may end them.
func (l *line[K]) callers(yield func(*caller) bool) {
	for c := l.waiting.Head; c != nil; {
		next := c.Next
		if !yield(c) {
			return
		}
		c = next
	}
}

// waits reports whether c is neither out nor booked.
func (l *line[K]) waits(c *caller) bool {
	return c.Prev != nil || c.Next != nil || l.waiting.Head == c
}

// end ends c with an error, if it waits.
func (l *line[K]) end(c *caller, err error) bool {
	if !l.waits(c) {
		return false
	}
	l.remove(c)
	l.finish(c, err)
	return true
}

func (l *line[K]) finish(c *caller, err error) {
	c.out, c.err = true, err
	close(c.done)
}

func (l *line[K]) remove(c *caller) {
	l.waiting.Remove(c)
	l.tokens -= c.n
	if !c.by.IsZero() {
		l.timed--
	}
}
