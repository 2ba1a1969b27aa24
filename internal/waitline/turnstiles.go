package waitline

import (
	"context"
	"sync"
	"sync/atomic"
)

// Turnstiles lines up the callers of each key so that the first of a line acts and the others wait
// to become the first. The zero Turnstiles has no lines. It must not be copied after its first use.
type Turnstiles struct {
	// Watch, if not nil, is called when a line begins, with the wake that Enter returns to its
	// callers. stop is called when the last caller has left.
	Watch func(key string, wake chan<- struct{}) (stop func())

	callers atomic.Int64 // in all lines
	mu      sync.Mutex
	lines   map[string]*turnstile // of the keys with callers
}

type turnstile struct {
	List[place, *place]
	callers int64
	wake    chan struct{}
	stop    func()
}

type place struct {
	Links[place]
	first chan struct{} // closed when this place becomes the first
}

// Enter waits until the caller is the first of the line of key, in the order in which callers came.
// The first calls leave once, when it has acted. If ctx ends before, Enter returns its error, and
// the caller is out of the line.
func (t *Turnstiles) Enter(
	ctx context.Context, key string,
) (wake <-chan struct{}, leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	p := &place{first: make(chan struct{})}
	l := t.join(key, p)
	select {
	case <-p.first:
		return l.wake, func() { t.leave(key, l, p) }, nil
	case <-ctx.Done():
		t.leave(key, l, p)
		return nil, nil, ctx.Err()
	}
}

// Callers returns how many callers the line of key has, the first included.
func (t *Turnstiles) Callers(key string) int64 {
	if t.callers.Load() == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lines[key]; l != nil {
		return l.callers
	}
	return 0
}

func (t *Turnstiles) join(key string, p *place) *turnstile {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lines[key]
	if l == nil {
		l = &turnstile{wake: make(chan struct{}, 1), stop: func() {}}
		if t.Watch != nil {
			l.stop = t.Watch(key, l.wake)
		}
		if t.lines == nil {
			t.lines = make(map[string]*turnstile)
		}
		t.lines[key] = l
		close(p.first)
	}
	l.Push(p)
	l.callers++
	t.callers.Add(1)
	return l
}

// leave also serves a caller that became the first while its context ended.
func (t *Turnstiles) leave(key string, l *turnstile, p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wasFirst := l.Head == p
	l.Remove(p)
	l.callers--
	t.callers.Add(-1)
	switch next := l.Head; {
	case next == nil:
		delete(t.lines, key)
		l.stop()
	case wasFirst:
		close(next.first)
	}
}
