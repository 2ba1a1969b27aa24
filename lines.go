package headgate

import (
	"context"
	"slices"
	"sync"
	"time"
)

// lines are the callers in this process who wait for turns that a store has booked, a
// line for each key and number of tokens. In a line turns are alike, so who is first has
// the first turn, whoever booked it. Only the first turn of a line has a timer.
type lines struct {
	mu sync.Mutex
	of map[lineKey]*line
}

type lineKey struct {
	key string
	n   int64
}

// turnAhead is a turn that was booked.
type turnAhead struct {
	at       time.Time // by when it has come for certain
	earliest time.Time // and what it is not before
	ticket   uint64
}

// line is some waiters in their order, and as many turns in theirs.
type line struct {
	first, last *inLine
	turns       []turnAhead
	timer       *time.Timer
}

// inLine is a caller in a line.
type inLine struct {
	at         time.Time // when its own turn would come: its place in the line
	turn       chan struct{}
	prev, next *inLine
	passed     *turnAhead
}

// wait joins the line of k with a turn of its own, waits for the turn of its place, and
// returns that. If ctx ends before, the last turn of the line is not needed, and abandoned.
func (s *lines) wait(ctx context.Context, k lineKey, t turnAhead, abandon func(ticket uint64)) (turnAhead, error) {
	w := &inLine{at: t.at, turn: make(chan struct{})}
	s.join(k, w, t)
	select {
	case <-w.turn:
		return *w.passed, nil
	case <-ctx.Done():
	}
	ticket, left := s.leave(k, w)
	if !left {
		return *w.passed, nil // its turn came as well
	}
	abandon(ticket)
	return turnAhead{}, ctx.Err()
}

func (s *lines) join(k lineKey, w *inLine, t turnAhead) {
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
	l.insert(w)
	i := len(l.turns)
	for i > 0 && l.turns[i-1].at.After(t.at) {
		i--
	}
	l.turns = slices.Insert(l.turns, i, t)
	if i == 0 {
		s.schedule(k, l)
	}
}

// schedule sets the timer of l to its first turn.
func (s *lines) schedule(k lineKey, l *line) {
	wait := time.Until(l.turns[0].at)
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
	now := time.Now()
	n := 0
	for n < len(l.turns) && !l.turns[n].at.After(now) {
		w := l.first
		l.remove(w)
		w.passed = &l.turns[n]
		close(w.turn)
		n++
	}
	l.turns = l.turns[n:]
	if len(l.turns) > 0 {
		s.schedule(k, l)
	} else if s.of[k] == l {
		delete(s.of, k)
	}
}

// leave takes w out of the line of k and says which turn that leaves over, unless its own
// has come.
func (s *lines) leave(k lineKey, w *inLine) (ticket uint64, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.passed != nil {
		return 0, false
	}
	l := s.of[k]
	l.remove(w)
	last := len(l.turns) - 1
	ticket = l.turns[last].ticket
	l.turns = l.turns[:last]
	if last == 0 {
		l.timer.Stop()
		delete(s.of, k)
	}
	return ticket, true
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
