package headgate

import (
	"context"
	"sync"
	"time"
)

// lines are the callers in this process who wait for turns that a store has booked: a line
// for each key, in the order of their turns. Only the first in a line has a timer.
//
// When one leaves, those behind move up. If all wait for as many tokens, turns are alike: each
// takes the turn before its own, and the last turn of the line goes back to the store.
// If not, the leaver's own goes back, and the store is asked when the turns of those
// behind come now.
type lines struct {
	mu sync.Mutex
	of map[lineKey]*line
}

// lineKey is a key, and the limits by which its turns are booked.
type lineKey struct {
	key    string
	limits [4]Limit
	more   *Limit // the rest of them, if there are more than four
}

func lineKeyOf(key string, limits []Limit) lineKey {
	k := lineKey{key: key}
	if copy(k.limits[:], limits) < len(limits) {
		k.more = &limits[len(k.limits)]
	}
	return k
}

// desk is where turns are booked.
type desk interface {
	// giveBack takes back the turn of a ticket for n tokens, as if it had not been booked.
	giveBack(ticket uint64, n int64)

	// look says in how long the turn of a ticket comes, if that is known.
	look(ticket uint64) (wait time.Duration, ok bool)

	// run does what has to be done at the desk for a caller who has left.
	run(do func())
}

// turnAhead is a turn that was booked.
type turnAhead struct {
	at       time.Time // by when it has come for certain
	earliest time.Time // and what it is not before
	ticket   uint64
}

// line is those who wait for turns of a key.
type line struct {
	first, last *inLine
	mixed       bool // not all have waited for as many tokens
	timer       *time.Timer
}

// inLine is a caller in a line.
type inLine struct {
	turnAhead
	n          int64
	prev, next *inLine
	come       chan struct{} // closed when the turn has come
	passed     bool
}

const (
	mostMoved = 4096 // of those behind one who leaves, so many take another's turn
	mostAsked = 64   // or so many are asked for at the store
)

// wait joins the line of k with a turn for n tokens, waits for the turn of its place, and
// returns that. If ctx ends before, it leaves the line.
func (s *lines) wait(ctx context.Context, k lineKey, n int64, t turnAhead, d desk) (turnAhead, error) {
	w := &inLine{turnAhead: t, n: n, come: make(chan struct{})}
	s.join(k, w)
	select {
	case <-w.come:
		return w.turnAhead, nil
	case <-ctx.Done():
	}
	back, behind, left := s.leave(k, w)
	if !left {
		return w.turnAhead, nil // its turn came as well
	}
	d.run(func() {
		d.giveBack(back, n)
		s.moveUp(k, behind, d)
	})
	return turnAhead{}, ctx.Err()
}

func (s *lines) join(k lineKey, w *inLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[k]
	if l == nil {
		l = new(line)
		if s.of == nil {
			s.of = make(map[lineKey]*line)
		}
		s.of[k] = l
	}
	l.mixed = l.mixed || l.first != nil && l.first.n != w.n
	l.insert(w)
	if l.first == w {
		s.schedule(k, l)
	}
}

// schedule sets the timer of l to its first turn.
func (s *lines) schedule(k lineKey, l *line) {
	wait := time.Until(l.first.at)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, func() { s.pass(k, l) })
		return
	}
	l.timer.Reset(wait)
}

// pass lets all of l go whose turn has come.
func (s *lines) pass(k lineKey, l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := time.Now(); l.first != nil && !l.first.at.After(now); {
		w := l.first
		l.remove(w)
		w.passed = true
		close(w.come)
	}
	s.tidy(k, l)
}

// tidy sets the timer of l anew, or forgets l if nobody waits in it.
func (s *lines) tidy(k lineKey, l *line) {
	switch {
	case l.first != nil:
		s.schedule(k, l)
	case s.of[k] == l:
		l.timer.Stop()
		delete(s.of, k)
	}
}

// leave takes w out of the line of k, unless its turn has come. It says whose ticket is not
// needed any more, and if the others wait for other numbers of tokens, who is behind.
func (s *lines) leave(k lineKey, w *inLine) (ticket uint64, behind []*inLine, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.passed {
		return 0, nil, false
	}
	l := s.of[k]
	if l.mixed {
		ticket, behind = w.ticket, w.behind(mostAsked)
	} else {
		ticket = w.handOn()
	}
	l.remove(w)
	s.tidy(k, l)
	return ticket, behind, true
}

// handOn gives the turn of w to who is behind it, his to the next, and so on, and
// returns the ticket that is left over.
func (w *inLine) handOn() uint64 {
	spare := w.turnAhead
	for b, n := w.next, 0; b != nil && n < mostMoved; b, n = b.next, n+1 {
		b.turnAhead, spare = spare, b.turnAhead
	}
	return spare.ticket
}

// behind are the first most of those behind w.
func (w *inLine) behind(most int) (all []*inLine) {
	for b := w.next; b != nil && len(all) < most; b = b.next {
		all = append(all, b)
	}
	return all
}

// moveUp asks when the turns of some in the line of k come now.
func (s *lines) moveUp(k lineKey, some []*inLine, d desk) {
	for _, w := range some {
		asked := time.Now()
		if wait, ok := d.look(w.ticket); ok {
			s.move(k, w, time.Now().Add(wait), asked.Add(wait))
		}
	}
}

// move sets an earlier time for the turn of w.
func (s *lines) move(k lineKey, w *inLine, at, earliest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.passed || !at.Before(w.at) {
		return
	}
	w.at, w.earliest = at, earliest
	if l := s.of[k]; l != nil && l.first == w {
		s.schedule(k, l)
	}
}

// waiting are the first of those who wait in the line of k.
func (s *lines) waiting(k lineKey) []*inLine {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[k]
	if l == nil {
		return nil
	}
	return (&inLine{next: l.first}).behind(mostAsked)
}

// insert puts w behind those whose turns come no later.
func (l *line) insert(w *inLine) {
	before := l.last
	for before != nil && before.at.After(w.at) {
		before = before.prev
	}
	w.prev = before
	if before == nil {
		w.next, l.first = l.first, w
	} else {
		w.next, before.next = before.next, w
	}
	if w.next == nil {
		l.last = w
	} else {
		w.next.prev = w
	}
}

func (l *line) remove(w *inLine) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
}
