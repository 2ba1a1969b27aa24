package waitline

import (
	"context"
	"slices"
	"time"
)

// Caller is a place in a line. It is asking the store until it is answered, and then waits.
type Caller[K comparable] struct {
	Links[Caller[K]]
	line   *line[K]
	place  uint64
	by     time.Time // it can use no start time after this
	waits  bool
	left   bool
	passed bool
	start  Start         // that it passed with
	come   chan struct{} // closed when it passes
}

// Answer is called once with what the store answered: the zero Start if it gave none.
func (c *Caller[K]) Answer(start Start) {
	l := c.line
	l.all.mu.Lock()
	defer l.leave()
	l.pass()
	l.asking--
	l.answered++
	if start.Times == nil {
		return
	}
	l.insert(start)
	if start.Due.After(c.by) {
		c.by = start.Due
	}
	if !c.left {
		l.wait(c)
	}
}

// Wait waits until the start time of c has come. If ctx ends before, c leaves the line, and
// Wait returns the error of ctx.
func (c *Caller[K]) Wait(ctx context.Context) error {
	l := c.line
	l.all.mu.Lock()
	if c.passed {
		l.all.mu.Unlock()
		return nil
	}
	c.come = make(chan struct{})
	l.all.mu.Unlock()
	select {
	case <-c.come:
		return nil
	case <-ctx.Done():
	}
	if c.Leave() {
		return ctx.Err()
	}
	return nil
}

// Leave takes c out of the line, also while it asks. It reports false if c has passed.
func (c *Caller[K]) Leave() bool {
	l := c.line
	l.all.mu.Lock()
	defer l.leave()
	if c.passed {
		return false
	}
	c.left = true
	l.remove(c)
	return true
}

// Take takes c, which has been answered, out of the line with its start time.
func (c *Caller[K]) Take() Start {
	l := c.line
	l.all.mu.Lock()
	defer l.leave()
	if c.passed {
		return c.start
	}
	i := 0
	for before := c.Prev; before != nil; before = before.Prev {
		i++
	}
	start := l.starts[i]
	l.starts = slices.Delete(l.starts, i, i+1)
	l.remove(c)
	return start
}
