package waitline

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// After this many denials a caller books its start, however far ahead.
	patience = 16

	// maxHeads is how many callers of a line ask at once at most.
	maxHeads = 256

	// Forever is a wait that bounds nothing.
	Forever time.Duration = math.MaxInt64
)

// Lines holds the callers of this process that wait for start times: a line for each K, in the
// order in which they came. Only the head of a line asks the store, as late as it can without losing
// a start to the time that an answer takes. So callers that leave have nothing in the store. If
// answers take longer than the limits need for a caller, several heads ask at once.
//
// L is a limit that denies. The zero Lines is ready to use.
type Lines[K comparable, L Limit] struct {
	n     atomic.Int64 // lines
	mu    sync.Mutex
	of    map[K]*line[K, L]
	trip  time.Duration // how long answers take, at most, of late
	polls bool          // the store does not book ahead
}

// Limit says how fast callers can pass.
type Limit interface {
	// Least returns the time from the start of n tokens that were denied until the tokens behind
	// them can pass, at least.
	Least(n, behind int64) time.Duration

	// Late returns the error of a caller that would have to wait too long.
	Late(wait time.Duration) error
}

// Store answers for one caller.
type Store[L Limit] interface {
	// Ask asks for a start that is at most maxWait ahead. An error means that the store is
	// unavailable.
	Ask(maxWait time.Duration) (Answer[L], error)

	// Cancel gives back a start that is ahead, if the store can.
	Cancel(times []time.Time)

	// Run runs f: in another goroutine, unless the store answers at once.
	Run(f func())

	// Each returns how often a caller of this cost can pass, at most.
	Each() time.Duration
}

// Answer is a grant or a denial.
type Answer[L Limit] struct {
	Granted bool
	Wait    time.Duration // until the start, or until the same request would be granted
	Left    int64         // how many tokens remain
	Times   []time.Time   // of a grant: what the store calls the start, under each limit
	Limit   L             // of a denial: the limit with the longest wait
	Polls   bool          // the store does not book ahead
	Paused  bool          // no request is granted before the wait is over, and none is booked
	Err     error         // why no wait helps this caller
}

// line is the callers that wait. Those before first have a start.
type line[K comparable, L Limit] struct {
	List[caller[K, L], *caller[K, L]]

	all    *Lines[K, L]
	key    K
	first  *caller[K, L] // without a start
	n      int           // callers
	tokens int64         // that the callers without a start ask for
	calls  int           // of the store, under way

	// What the store said last: so many tokens remain, or so many were denied until then.
	room    int64
	known   bool // nothing was granted since
	until   time.Time
	denied  int64
	limit   L
	window  int       // how many callers of equal cost ask at once
	failed  time.Time // when it did not answer, or the zero time
	unheard bool      // the deadlines of some callers are not checked
}

type caller[K comparable, L Limit] struct {
	Links[caller[K, L]]

	n     int64
	by    time.Time // its deadline, or the zero time
	store Store[L]

	head, asking, booked, out bool

	denials int
	ahead   time.Duration // how much farther ahead than others it may book
	planned time.Time     // when it was to ask
	due     time.Time     // its start by the clock of this process
	times   []time.Time   // and by that of the store

	err      error
	panicked any
	changed  chan struct{} // receives after a change
}

// Wait returns when a caller may use n tokens, or with the reason why it may not. by is its
// deadline, or the zero time.
func (s *Lines[K, L]) Wait(
	ctx context.Context, k K, n int64, by time.Time, store Store[L],
) error {
	c := &caller[K, L]{n: n, by: by, store: store, changed: make(chan struct{}, 1)}
	l, err := s.join(k, c)
	if err != nil {
		return err
	}
	var timer *time.Timer
	for {
		next, at := l.next(c)
		switch next {
		case ends:
			if c.panicked != nil {
				panic(c.panicked)
			}
			return c.err
		case asks:
			store.Run(func() { l.ask(c) })
			continue
		}
		var ring <-chan time.Time
		if !at.IsZero() {
			if timer == nil {
				timer = time.NewTimer(time.Until(at))
				defer timer.Stop()
			} else {
				timer.Reset(time.Until(at))
			}
			ring = timer.C
		}
		select {
		case <-c.changed:
		case <-ring:
		case <-ctx.Done():
			if l.leave(c) {
				return ctx.Err()
			}
		}
	}
}

// Has reports whether there is a line of k.
func (s *Lines[K, L]) Has(k K) bool {
	if !s.Any() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[k] != nil
}

// Any reports whether there is any line.
func (s *Lines[K, L]) Any() bool { return s.n.Load() > 0 }

// join adds c to the line of k, unless it could not pass before its deadline.
func (s *Lines[K, L]) join(k K, c *caller[K, L]) (*line[K, L], error) {
	s.mu.Lock()
	l := s.of[k]
	if l == nil {
		if s.of == nil {
			s.of = make(map[K]*line[K, L])
		}
		l = &line[K, L]{all: s, key: k, room: math.MaxInt64, window: 1, unheard: true}
		s.of[k] = l
		s.n.Add(1)
	}
	l.Push(c)
	if l.first == nil {
		l.first = c
	}
	l.n++
	l.tokens += c.n
	defer l.unlock()
	if !l.known || l.first.n < l.denied {
		l.unheard = true
	} else if l.refuse(c, l.tokens-l.first.n, time.Now()) {
		return nil, c.err
	}
	l.choose(false)
	return l, nil
}

// unlock unlocks all lines, and drops l if no caller needs it.
func (l *line[K, L]) unlock() {
	if l.n+l.calls == 0 {
		delete(l.all.of, l.key)
		l.all.n.Add(-1)
	}
	l.all.mu.Unlock()
}

// refuse ends c if it could not pass before its deadline, with so many tokens after those that were
// denied, up to its own.
func (l *line[K, L]) refuse(c *caller[K, L], behind int64, now time.Time) bool {
	if c.by.IsZero() || c.asking {
		return false
	}
	start := l.until.Add(l.limit.Least(l.denied, behind))
	if !start.After(c.by) {
		return false
	}
	l.end(c, l.limit.Late(start.Sub(now)))
	return true
}

// What a caller does next.
type step int

const (
	waits step = iota // for a change, or for a time
	asks
	ends
)

func (l *line[K, L]) next(c *caller[K, L]) (step, time.Time) {
	l.all.mu.Lock()
	defer l.unlock()
	now := time.Now()
	switch {
	case c.out:
		return ends, time.Time{}
	case c.booked && now.Before(c.due):
		return waits, c.due
	case c.booked:
		l.remove(c)
		return ends, time.Time{}
	case c.asking:
		return waits, time.Time{}
	case !c.head:
		c.planned = time.Time{}
		return waits, time.Time{}
	}
	at := l.asksAt(c)
	if now.Before(at) {
		c.planned = at
		return waits, at
	}
	if c.planned.IsZero() || c.planned.After(now) {
		c.planned = now
	}
	c.asking = true
	l.calls++
	return asks, time.Time{}
}

// lead is how far ahead a head books: two trips, so that the next start can be booked before this
// one comes.
func (s *Lines[K, L]) lead() time.Duration { return (2 * s.trip).Truncate(time.Microsecond) }

// asksAt returns when the head c asks.
func (l *line[K, L]) asksAt(c *caller[K, L]) time.Time {
	switch {
	case !l.known || c.n < l.denied:
		return time.Time{}
	case l.all.polls:
		return l.until
	case c.denials >= patience:
		return time.Time{}
	}
	return l.until.Add(-l.all.lead() - c.ahead)
}

// maxWait returns how far ahead c may book. All callers of a line may book as far as the trips of
// this process need. With each denial a caller may book a little farther ahead than before, so that
// the processes take turns, and so that a large cost is granted in the end.
func (l *line[K, L]) maxWait(c *caller[K, L]) time.Duration {
	wait := l.all.lead() + c.ahead
	if c.denials >= patience {
		wait = Forever
	}
	if !c.by.IsZero() {
		wait = min(wait, max(time.Until(c.by), 0))
	}
	return wait
}

var errEnded = errors.New("headgate: the store ended the goroutine")

func (l *line[K, L]) ask(c *caller[K, L]) {
	l.all.mu.Lock()
	wait := l.maxWait(c)
	l.all.mu.Unlock()
	var a Answer[L]
	err := errEnded
	defer func() {
		panicked := recover()
		l.answered(c, a, err, panicked)
	}()
	a, err = c.store.Ask(wait)
}

func (l *line[K, L]) answered(c *caller[K, L], a Answer[L], err error, panicked any) {
	l.all.mu.Lock()
	now := time.Now()
	var spare []time.Time
	c.asking = false
	l.calls--
	switch {
	case err != nil:
		c.panicked = panicked
		l.fail(c, err, now)
	case a.Err != nil:
		l.end(c, a.Err)
	default:
		l.all.polls = a.Polls
		l.all.measure(now.Sub(c.planned))
		l.failed = time.Time{}
		if a.Granted {
			spare = l.grant(c, a, now)
		} else {
			l.deny(c, a, now)
		}
	}
	c.planned = time.Time{}
	c.signal()
	l.choose(a.Granted)
	l.unlockAndCancel(c, spare, now.Add(a.Wait))
}

// unlockAndCancel unlocks all lines, and cancels a start that no caller uses, if it is ahead.
func (l *line[K, L]) unlockAndCancel(c *caller[K, L], spare []time.Time, due time.Time) {
	if spare == nil || !due.After(time.Now()) {
		l.unlock()
		return
	}
	l.calls++
	l.unlock()
	c.store.Run(func() {
		defer func() {
			l.all.mu.Lock()
			l.calls--
			l.known = false // the head may be granted now what it was denied
			l.choose(true)
			l.unlock()
		}()
		c.store.Cancel(spare)
	})
}

// measure counts an answer that came so long after its caller was to ask.
func (s *Lines[K, L]) measure(took time.Duration) {
	if took > s.trip {
		s.trip = min(took, 2*s.trip+time.Millisecond) // one slow answer says little
	} else {
		s.trip -= (s.trip - took) / 16
	}
}

// fail ends c with an error of the store. If the next call fails, too, all callers end: each might
// have to wait for an error of its own.
func (l *line[K, L]) fail(c *caller[K, L], err error, now time.Time) {
	again := !l.failed.IsZero() && c.planned.After(l.failed)
	if l.failed.IsZero() && c.panicked == nil {
		l.failed = now
	}
	l.known = false
	l.end(c, err)
	for d := l.unbooked(); again && d != nil; {
		next := d.Next
		if !d.asking {
			l.end(d, err)
		}
		d = next
	}
}

// grant gives the start that c was granted to a caller, or returns it.
func (l *line[K, L]) grant(c *caller[K, L], a Answer[L], now time.Time) (spare []time.Time) {
	l.known, l.room = false, 0
	if a.Wait == 0 {
		l.room = a.Left
	}
	l.window = maxHeads
	if each := c.store.Each(); each > 0 {
		l.window = int(min(l.all.lead()/each+1, maxHeads))
	}
	return l.assign(c, c.n, now.Add(a.Wait), a.Times)
}

// assign gives a start for n tokens to the first caller of the line, if it needs as many, or else to
// the one that asked. It returns the start if neither takes it.
func (l *line[K, L]) assign(
	asker *caller[K, L], n int64, due time.Time, times []time.Time,
) (spare []time.Time) {
	for c := l.unbooked(); c != nil && c.n == n; c = l.unbooked() {
		if asker != nil && !l.together(asker) || c.before(due) {
			break
		}
		if c == asker || c.by.IsZero() || !due.After(c.by) {
			l.book(c, due, times)
			return nil
		}
		l.end(c, l.limit.Late(time.Until(due)))
	}
	if asker != nil && !asker.out && !asker.booked {
		l.book(asker, due, times)
		return nil
	}
	return times
}

// together reports whether all callers from the first one to c need the same number of tokens.
func (l *line[K, L]) together(c *caller[K, L]) bool {
	for d := l.first; d != nil && d.n == c.n; d = d.Next {
		if d == c {
			return true
		}
	}
	return c.out || c.booked
}

// before reports whether due is before the start of the caller in front of c.
func (c *caller[K, L]) before(due time.Time) bool {
	return c.Prev != nil && c.Prev.booked && c.Prev.n != c.n && c.Prev.due.After(due)
}

// book gives c a start. Starts of callers that asked at the same time are put in order.
func (l *line[K, L]) book(c *caller[K, L], due time.Time, times []time.Time) {
	c.booked, c.head, c.due, c.times = true, false, due, times
	l.tokens -= c.n
	c.signal()
	for p := c.Prev; p != nil; p = p.Prev {
		switch {
		case !p.booked:
			continue
		case !p.due.After(c.due):
			return
		case p.n != c.n:
			if p.times != nil && c.times != nil && !p.times[0].After(c.times[0]) {
				c.due = p.due // its answer was faster than that of p
			}
			return
		}
		p.due, c.due, p.times, c.times = c.due, p.due, c.times, p.times
		p.signal()
		c = p
	}
}

// deny notes that c was denied, and ends the callers that cannot pass before their deadlines.
func (l *line[K, L]) deny(c *caller[K, L], a Answer[L], now time.Time) {
	until := now.Add(a.Wait)
	sooner := !l.unheard && !until.After(l.until.Add(l.all.lead()+l.limit.Least(l.denied, c.n)))
	l.known, l.room, l.until, l.denied, l.limit = true, 0, until, c.n, a.Limit
	c.denials++
	if a.Paused {
		l.until, c.denials = l.until.Add(l.all.lead()), 0
	}
	c.ahead = (a.Wait / 64 * time.Duration(max(c.denials-1, 0))).Truncate(time.Microsecond)
	refused := !c.booked && !c.out && l.refuse(c, 0, now)
	if sooner && !refused {
		return // no caller has to wait longer than was known
	}
	if l.unheard = l.calls > 0; l.unheard || l.unbooked() == nil {
		return // others may be granted what they asked for
	}
	behind, heads := int64(0), 0
	for d := l.first; d != nil && l.first.n >= l.denied; {
		next := d.Next
		if heads > 0 && !d.booked {
			behind += d.n
		}
		if !d.booked && l.refuse(d, behind, now) {
			behind -= min(behind, d.n)
		} else if !d.booked {
			heads++
		}
		d = next
	}
}

// leave takes c out of the line, and reports false if it need not leave any more. Its start goes to
// the next caller.
func (l *line[K, L]) leave(c *caller[K, L]) bool {
	l.all.mu.Lock()
	if c.out || c.booked && !time.Now().Before(c.due) {
		l.all.mu.Unlock()
		return false
	}
	next, due, spare := c.Next, c.due, c.times
	l.remove(c)
	if c.booked {
		for ; next != nil && next.booked && next.n == c.n; next = next.Next {
			next.due, due, next.times, spare = due, next.due, spare, next.times
			next.signal()
		}
		if next == nil || !next.booked {
			spare = l.assign(nil, c.n, due, spare)
		}
	}
	l.choose(false)
	l.unlockAndCancel(c, spare, due)
	return true
}

// choose decides which callers ask: as many as pass within a trip, if their costs are equal, so that
// whatever the order of the answers, they pass in the order in which they came; and as many as will
// be granted at once.
func (l *line[K, L]) choose(wake bool) {
	heads, tokens, equal := 0, int64(0), true
	for c := l.unbooked(); c != nil && heads < maxHeads; c = c.Next {
		if c.booked {
			continue
		}
		heads++
		tokens += c.n
		equal = equal && heads <= l.window && c.n == l.first.n
		head := equal || tokens <= l.room
		if !head && !c.head {
			return
		}
		if head && (wake || !c.head) && !c.asking {
			c.signal()
		}
		c.head = head
	}
}

// unbooked returns the first caller without a start.
func (l *line[K, L]) unbooked() *caller[K, L] {
	for l.first != nil && l.first.booked {
		l.first = l.first.Next
	}
	return l.first
}

// end takes c out of the line with an error.
func (l *line[K, L]) end(c *caller[K, L], err error) {
	if c.out || c.booked {
		return
	}
	c.err = err
	l.remove(c)
	c.signal()
}

func (l *line[K, L]) remove(c *caller[K, L]) {
	if l.first == c {
		l.first = c.Next
	}
	if !c.booked {
		l.tokens -= c.n
	}
	l.Remove(c)
	c.out = true
	l.n--
}

func (c *caller[K, L]) signal() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}
