package httplimit

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// pauseLines are the callers in this process who wait for pauses to end, a line for each
// key. The first of a line waits for the end of the pause and looks whether it is over;
// the others wait for it. So they go on one after the other, in the order in which they came.
type pauseLines struct {
	mu sync.Mutex
	of map[string]*list.List // of those behind the first, if there is one
}

// first is closed when the caller of that place in a line is the first.
func first(place *list.Element) chan struct{} {
	c, _ := place.Value.(chan struct{})
	return c
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
	place := l.join(key)
	if place == nil {
		return nil
	}
	select {
	case <-first(place):
		return nil
	case <-ctx.Done():
		l.giveUp(key, place)
		return ctx.Err()
	}
}

// join gives nil to the first of a line, and their places to the others.
func (l *pauseLines) join(key string) *list.Element {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = make(map[string]*list.List)
	}
	line := l.of[key]
	if line == nil {
		l.of[key] = list.New()
		return nil
	}
	return line.PushBack(make(chan struct{}))
}

// giveUp takes a place out of the line, also if it has become the first meanwhile.
func (l *pauseLines) giveUp(key string, place *list.Element) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-first(place):
		l.advance(key)
	default:
		l.of[key].Remove(place)
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
	next := line.Front()
	if next == nil {
		delete(l.of, key)
		return
	}
	line.Remove(next)
	close(first(next))
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
