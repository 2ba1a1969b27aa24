package waitline

import (
	"slices"
	"sync"
	"time"
)

// Lines holds the callers of this process that wait for start times, a line for each K.
//
// All callers of one line request the same n, so any start time suits any of them. So the store
// only decides which start times this process has; who gets which is decided here. Of the
// callers that have been answered, the first to arrive has the first start time, and so on.
// When a caller leaves, those behind it move up and the last start time becomes spare. A
// spare one is cancelled in the store, which refuses if another process has booked after it.
//
// The zero Lines is ready to use.
type Lines[K comparable] struct {
	mu sync.Mutex
	of map[K]*line[K]
}

// Store is what a line books in: the same for all callers of a line.
type Store interface {
	// Cancel gives the start time back unless a later one was booked. It reports whether it
	// did. After an error, it may have.
	Cancel(s Start) (done bool, err error)

	// Run runs f: in another goroutine, unless a cancel takes no time.
	Run(f func())
}

// Start is a start time that the store has given. The zero Start stands for none.
type Start struct {
	Due   time.Time   // when it has come, by the clock of this process
	Times []time.Time // what the store calls it, under each limit
}

// line is the callers that wait, in the order of their places, and the start times, in their order.
// The i-th caller has the i-th start time. Start times beyond the last caller are spare.
type line[K comparable] struct {
	all        *Lines[K]
	key        K
	store      Store
	waiting    List[Caller[K], *Caller[K]]
	n          int // callers waiting
	starts     []Start
	timer      *time.Timer
	due        time.Time // for which the timer is set
	places     uint64    // that were ever taken
	asking     int       // callers that the store has not answered
	answered   int       // callers that it has
	cancelling bool
}

// Join takes the next place in the line of k, for a caller that can use no start time after
// by. The caller has a start time if one is spare. If not, it must ask the store, and call
// [Caller.Answer] once.
func (s *Lines[K]) Join(k K, by time.Time, store Store) (c *Caller[K], booked bool) {
	l := s.enter(k, store)
	defer l.leave()
	l.places++
	c = &Caller[K]{line: l, place: l.places, by: by}
	l.pass()
	if len(l.starts) > l.n && !l.starts[l.n].Due.After(by) {
		l.wait(c)
		return c, true
	}
	l.asking++
	return c, false
}

// Return makes start, which a caller had taken out of the line of k, spare. The caller must call
// cancel, which returns when start is cancelled, with the error of the store if there was one.
func (s *Lines[K]) Return(k K, start Start, store Store) (cancel func() error) {
	l := s.enter(k, store)
	l.insert(start)
	first := !l.cancelling
	l.cancelling = true
	l.leave()
	if !first {
		return func() error { return nil }
	}
	return l.cancelSpare
}

// Len returns the number of lines in which callers are.
func (s *Lines[K]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.of)
}

// enter locks s and returns the line of k. The caller must call leave.
func (s *Lines[K]) enter(k K, store Store) *line[K] {
	s.mu.Lock()
	l := s.of[k]
	if l == nil {
		if s.of == nil {
			s.of = make(map[K]*line[K])
		}
		l = &line[K]{all: s, key: k, store: store}
		s.of[k] = l
	}
	return l
}

// leave lets the callers pass whose start time has come, unlocks, and begins to cancel what
// is spare.
func (l *line[K]) leave() {
	l.pass()
	l.schedule()
	begin := !l.cancelling && l.spare()
	l.cancelling = l.cancelling || begin
	if l.n+l.asking+len(l.starts) == 0 && !l.cancelling && l.all.of[l.key] == l {
		delete(l.all.of, l.key)
	}
	l.all.mu.Unlock()
	if begin {
		l.store.Run(func() { _ = l.cancelSpare() }) // after an error it stays charged
	}
}

// insert adds a start time. When one has come, all before it have come as well.
func (l *line[K]) insert(s Start) {
	i := len(l.starts)
	for i > 0 && l.starts[i-1].Times[0].After(s.Times[0]) {
		i--
	}
	l.starts = slices.Insert(l.starts, i, s)
	if i+1 < len(l.starts) {
		i++
	}
	for ; i > 0 && l.starts[i].Due.Before(l.starts[i-1].Due); i-- {
		l.starts[i-1].Due = l.starts[i].Due
	}
}

// wait puts c, for which there is one more start time now, after the callers that arrived before
// it. It overtakes as few of them as its deadline requires, and never makes a later caller miss its
// own.
func (l *line[K]) wait(c *Caller[K]) {
	before, i := l.waiting.Tail, l.n
	for before != nil && (l.starts[i].Due.After(c.by) ||
		before.place > c.place && !l.starts[i].Due.After(before.by)) {
		before, i = before.Prev, i-1
	}
	l.waiting.Insert(c, before)
	l.n++
	c.waits = true
}

func (l *line[K]) remove(c *Caller[K]) {
	if c.waits {
		l.waiting.Remove(c)
		l.n--
		c.waits = false
	}
}

// pass lets all callers pass whose start time has come. A start time that has gone by with
// no caller to use it is lost: used later, it could come too close to the next.
func (l *line[K]) pass() {
	now := time.Now()
	for l.n > 0 && !l.starts[0].Due.After(now) {
		c := l.waiting.Head
		l.remove(c)
		c.passed, c.start = true, l.starts[0]
		l.starts = l.starts[1:]
		if c.come != nil {
			close(c.come)
		}
	}
	for l.n == 0 && len(l.starts) > 0 && (l.starts[0].Due.Before(now) ||
		l.asking == 0 && !l.starts[0].Due.After(now)) {
		l.starts = l.starts[1:]
	}
}

// schedule sets the timer for the first caller.
func (l *line[K]) schedule() {
	switch {
	case l.n == 0 && l.timer != nil:
		l.timer.Stop()
		l.due = time.Time{}
	case l.n > 0 && !l.due.Equal(l.starts[0].Due):
		l.due = l.starts[0].Due
		if l.timer == nil {
			l.timer = time.AfterFunc(time.Until(l.due), l.tick)
		} else {
			l.timer.Reset(time.Until(l.due))
		}
	}
}

func (l *line[K]) tick() {
	l.all.mu.Lock()
	l.due = time.Time{}
	l.leave()
}

// cancelSpare cancels the spare start times in the store, the last one first, one at a time.
// If the store refuses, a later one was booked. If that may be for a caller of this line, the
// start time is kept until the callers that ask are answered. If not, or after an error or a panic,
// all stay charged.
func (l *line[K]) cancelSpare() (err error) {
	l.all.mu.Lock()
	defer func() {
		l.cancelling = false
		l.leave()
	}()
	for err == nil && l.spare() {
		answered, last := l.answered, l.starts[len(l.starts)-1]
		l.starts = l.starts[:len(l.starts)-1]
		var done bool
		switch done, err = l.cancel(last); {
		case done || err != nil:
		case l.asking == 0 && l.answered == answered:
			l.starts = l.starts[:l.n]
		case last.Due.After(time.Now()):
			l.insert(last)
			l.schedule()
		}
	}
	return err
}

// cancel cancels start in the store, while the line is not locked. If that fails, the others that
// are spare stay charged: they may take as long to fail, one after the other.
func (l *line[K]) cancel(start Start) (done bool, err error) {
	failed := true // unless Cancel returns
	l.all.mu.Unlock()
	defer func() {
		l.all.mu.Lock()
		if failed {
			l.starts = l.starts[:l.n]
		}
	}()
	done, err = l.store.Cancel(start)
	failed = err != nil
	return done, err
}

// spare reports whether there is a start time to cancel. While callers ask, it may be theirs.
func (l *line[K]) spare() bool {
	return len(l.starts) > l.n && l.asking == 0 && l.starts[len(l.starts)-1].Due.After(time.Now())
}
