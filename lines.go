package headgate

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/waitline"
)

// lines are the callers in this process who wait for turns that a store has booked: a line
// for each key, in the order of their turns. Only the first in a line has a timer.
//
// When one leaves, those behind move up. If all wait for as many tokens, turns are alike: each
// takes the turn before its own, and the last turn of the line goes back to the store.
// If not, the leaver's own goes back, and the store is asked when the turns of all in the
// line come now, by one at a time for all who leave.
type lines struct {
	mu sync.Mutex
	of map[turnKey]*line
}

// turnKey is a key, and how its turns are booked.
type turnKey struct {
	key    string
	limits [4]Limit
	more   *Limit // the rest of them, if there are more than four
	hold   time.Duration
}

func turnKeyOf(key string, limits []Limit, hold time.Duration) turnKey {
	k := turnKey{key: key, hold: hold}
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
	waitline.List[inLine, *inLine]
	mixed bool // not all have waited for as many tokens
	timer *time.Timer

	moving, stale bool // somebody asks for the turns; they have changed since he began
}

// inLine is a caller in a line.
type inLine struct {
	waitline.Links[inLine]
	turnAhead
	n      int64
	come   chan struct{} // closed when the turn has come
	passed bool
}

// mostMoved of those behind one who leaves take another's turn.
const mostMoved = 4096

// wait joins the line of k with a turn for n tokens, waits for the turn of its place, and
// returns that. If ctx ends before, it leaves the line, and returns the turn that is left over.
func (s *lines) wait(ctx context.Context, k turnKey, n int64, t turnAhead, d desk) (turnAhead, error) {
	w := &inLine{turnAhead: t, n: n, come: make(chan struct{})}
	s.join(k, w)
	select {
	case <-w.come:
		return w.turnAhead, nil
	case <-ctx.Done():
	}
	spare, mixed, left := s.leave(k, w)
	if !left {
		return w.turnAhead, nil // its turn came as well
	}
	d.run(func() {
		d.giveBack(spare.ticket, n)
		if mixed {
			s.moveUp(k, d)
		}
	})
	return spare, ctx.Err()
}

func (s *lines) join(k turnKey, w *inLine) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[k]
	if l == nil {
		l = new(line)
		if s.of == nil {
			s.of = make(map[turnKey]*line)
		}
		s.of[k] = l
	}
	l.mixed = l.mixed || l.Head != nil && l.Head.n != w.n
	l.join(w)
	if l.Head == w {
		s.schedule(k, l)
	}
}

// schedule sets the timer of l to its first turn.
func (s *lines) schedule(k turnKey, l *line) {
	wait := time.Until(l.Head.at)
	if l.timer == nil {
		l.timer = time.AfterFunc(wait, func() { s.pass(k, l) })
		return
	}
	l.timer.Reset(wait)
}

// pass lets all of l go whose turn has come.
func (s *lines) pass(k turnKey, l *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := time.Now(); l.Head != nil && !l.Head.at.After(now); {
		w := l.Head
		l.Remove(w)
		w.passed = true
		close(w.come)
	}
	s.tidy(k, l)
}

// tidy sets the timer of l anew, or forgets l if nobody waits in it.
func (s *lines) tidy(k turnKey, l *line) {
	switch {
	case l.Head != nil:
		s.schedule(k, l)
	case s.of[k] == l:
		l.timer.Stop()
		delete(s.of, k)
	}
}

// leave takes w out of the line of k, unless its turn has come. It says which turn is left
// over, and whether the others wait for other numbers of tokens.
func (s *lines) leave(k turnKey, w *inLine) (spare turnAhead, mixed, left bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.passed {
		return turnAhead{}, false, false
	}
	l := s.of[k]
	if l.mixed {
		spare = w.turnAhead
	} else {
		spare = w.handOn()
	}
	l.Remove(w)
	s.tidy(k, l)
	return spare, l.mixed, true
}

// handOn gives the turn of w to who is behind it, his to the next, and so on, and
// returns the one that is left over.
func (w *inLine) handOn() turnAhead {
	spare := w.turnAhead
	for b, n := w.Next, 0; b != nil && n < mostMoved; b, n = b.Next, n+1 {
		b.turnAhead, spare = spare, b.turnAhead
	}
	return spare
}

// moveUp asks when the turns of all in the line of k come now. If somebody else does that, he
// begins again.
func (s *lines) moveUp(k turnKey, d desk) {
	l, asked := s.begin(k)
	for l != nil {
		for _, a := range asked {
			before := time.Now()
			if wait, ok := d.look(a.ticket); ok {
				s.move(k, a, time.Now().Add(wait), before.Add(wait))
			}
		}
		asked, l = s.again(l)
	}
}

// standing is somebody in a line, and the ticket that he had.
type standing struct {
	of     *inLine
	ticket uint64
}

// begin gives the line of k to one who asks for its turns, unless somebody does that.
func (s *lines) begin(k turnKey) (*line, []standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.of[k]
	if l == nil {
		return nil, nil
	}
	if l.stale = l.moving; l.moving {
		return nil, nil
	}
	l.moving = true
	return l, l.all()
}

// again gives who is in l to the one who asks for its turns, if these have changed meanwhile.
func (s *lines) again(l *line) ([]standing, *line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.stale {
		l.moving = false
		return nil, nil
	}
	l.stale = false
	return l.all(), l
}

func (l *line) all() (all []standing) {
	for w := l.Head; w != nil; w = w.Next {
		all = append(all, standing{w, w.ticket})
	}
	return all
}

// move sets an earlier time for the turn of one in the line of k, who may have another by now.
func (s *lines) move(k turnKey, p standing, at, earliest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := p.of
	if w.passed || w.ticket != p.ticket || !at.Before(w.at) {
		return
	}
	w.at, w.earliest = at, earliest
	if l := s.of[k]; l != nil && l.Head == w {
		s.schedule(k, l)
	}
}

// join puts w behind those whose turns come no later.
func (l *line) join(w *inLine) {
	before := l.Tail
	for before != nil && before.at.After(w.at) {
		before = before.Prev
	}
	l.Insert(w, before)
}
