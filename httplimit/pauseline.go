package httplimit

import (
	"context"
	"sync"
	"time"
)

// pauseLines are the callers in this process who wait for pauses to end, a line for each
// key. The first of a line waits for the end of the pause and looks whether it is over;
// the others wait for it. So they go on one after the other, in the order in which they came.
type pauseLines struct {
	mu sync.Mutex
	of map[string]*pauseLine // an entry means that there is a first
}

// pauseLine are those behind the first, linked so that giving up takes no longer in a long
// line: that is done under the lock of all keys.
type pauseLine struct{ next, last *pauseWaiter }

type pauseWaiter struct {
	first         chan struct{} // closed when it is the first
	ahead, behind *pauseWaiter
}

// add puts w at the end of the line.
func (l *pauseLine) add(w *pauseWaiter) {
	w.ahead = l.last
	if l.last != nil {
		l.last.behind = w
	} else {
		l.next = w
	}
	l.last = w
}

// remove takes w out of the line.
func (l *pauseLine) remove(w *pauseWaiter) {
	if w.ahead != nil {
		w.ahead.behind = w.behind
	} else {
		l.next = w.behind
	}
	if w.behind != nil {
		w.behind.ahead = w.ahead
	} else {
		l.last = w.ahead
	}
}

// busy says whether somebody waits for the pause of key.
func (l *pauseLines) busy(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, busy := l.of[key]
	return busy
}

// enter waits until the caller is the first of the line.
func (l *pauseLines) enter(ctx context.Context, key string) error {
	w := l.join(key)
	if w == nil {
		return nil
	}
	select {
	case <-w.first:
		return nil
	case <-ctx.Done():
		l.giveUp(key, w)
		return ctx.Err()
	}
}

// join gives nil to the first of a line, and what the others wait with.
func (l *pauseLines) join(key string) *pauseWaiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*pauseLine)
	}
	line := l.of[key]
	if line == nil {
		l.of[key] = &pauseLine{}
		return nil
	}
	w := &pauseWaiter{first: make(chan struct{})}
	line.add(w)
	return w
}

// giveUp takes w out of the line, also if it has become the first meanwhile.
func (l *pauseLines) giveUp(key string, w *pauseWaiter) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-w.first:
		l.advance(key)
	default:
		l.of[key].remove(w)
	}
}

// leave lets the next of the line be the first.
func (l *pauseLines) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.advance(key)
}

func (l *pauseLines) advance(key string) {
	line := l.of[key]
	w := line.next
	if w == nil {
		delete(l.of, key)
		return
	}
	line.remove(w)
	close(w.first)
}

// sleep waits for d, unless ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
