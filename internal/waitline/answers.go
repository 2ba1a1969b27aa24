package waitline

import (
	"cmp"
	"errors"
	"time"
)

var errEnded = errors.New("headgate: the store ended the goroutine")

// ask asks the store for a start of c.
func (l *line[K]) ask(c *caller, planned time.Time) {
	wait := l.lead(c)
	if !c.by.IsZero() {
		wait = min(wait, max(time.Until(c.by), 0))
	}
	q := &call{of: c}
	c.asking = q
	var a Answer
	l.call(q, c.store, func() (err error) {
		a, err = c.store.Ask(wait)
		return err
	}, func(err error) {
		q.of.asking = nil
		l.answered(q.of, a, err, planned)
	})
}

// call is a call of the store, for a caller that may change meanwhile: see assign.
type call struct{ of *caller }

// call calls store by f, and then done. If that panics, the panic is raised in the caller of q,
// unless it has left.
func (l *line[K]) call(q *call, store Store, f func() error, done func(error)) {
	if store.Inline() {
		done(f())
		return
	}
	l.calls++
	go func() {
		err := errEnded
		defer func() {
			panicked := recover()
			l.mu.Lock()
			l.calls--
			if l.waits(q.of) {
				q.of.panicked = panicked
			}
			done(err)
			l.advance(time.Now())
		}()
		err = f()
	}()
}

func (l *line[K]) answered(c *caller, a Answer, err error, planned time.Time) {
	now := time.Now()
	if err != nil {
		l.fail(c, err, a.Invalid, planned)
		return
	}
	l.measure(now.Sub(planned))
	l.polls, l.failed = l.polls || a.Polls, time.Time{}
	switch {
	case a.Granted:
		l.grant(c, a, now)
		if l.unsure {
			l.refuseAll(now)
		}
		return
	case a.Paused:
		l.last.known, l.room = false, 0
		l.paused = answer{until: now.Add(a.Wait), limit: a.Limit}
	default:
		c.denials, c.wait = c.denials+1, a.Wait
		l.last, l.room = answer{until: now.Add(a.Wait), n: c.n, limit: a.Limit, known: true}, 0
	}
	l.refuseAll(now)
}

// measure notes how long an answer took. It follows most answers, and no single slow one.
func (l *line[K]) measure(took time.Duration) {
	if longer := took - l.trip; longer > 0 {
		l.trip += min(longer, 4*l.trip+20*time.Millisecond) / 2
	} else {
		l.trip += longer / 16
	}
}

// fail ends c. If the store does not answer the next call, either, all callers end: each might have
// to wait for an error of its own.
func (l *line[K]) fail(c *caller, err error, invalid bool, planned time.Time) {
	l.last.known = false
	l.end(c, err)
	switch {
	case invalid || errors.Is(err, errEnded):
	case l.failed.IsZero():
		l.failed = time.Now()
	case planned.After(l.failed):
		for c := range l.callers {
			if c.asking == nil {
				l.end(c, err)
			}
		}
	}
}

// grant gives a start that c was granted to a caller.
func (l *line[K]) grant(c *caller, a Answer, now time.Time) {
	due, limit := now.Add(a.Wait), cmp.Or(a.Limit, l.last.limit)
	l.last = answer{until: due, n: c.n, limit: limit, ahead: a.Wait > 0}
	l.room = a.Left
	if l.last.ahead {
		l.room = 0
	}
	l.last.known = limit != nil && l.room == 0
	l.assign(booking{c, due, a.Start})
}
