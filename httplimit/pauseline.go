package httplimit

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pauseLines are the callers in this process who wait for pauses to end, a line for each
// key. The first of a line waits for the end of the pause and looks whether it is over;
// the others wait for it. So they go on one after the other, in the order in which they came.
type pauseLines struct {
	mu sync.Mutex
	of map[string][]chan struct{} // of those behind the first; an entry means that there is one
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
	first := l.join(key)
	if first == nil {
		return nil
	}
	select {
	case <-first:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	i := slices.Index(l.of[key], first)
	if i >= 0 {
		l.of[key] = slices.Delete(l.of[key], i, i+1)
	}
	l.mu.Unlock()
	if i < 0 { // became the first meanwhile
		l.leave(key)
	}
	return ctx.Err()
}

// join gives nil to the first of a line, and what the others wait for.
func (l *pauseLines) join(key string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind, busy := l.of[key]
	if l.of == nil {
		l.of = make(map[string][]chan struct{})
	}
	if !busy {
		l.of[key] = nil
		return nil
	}
	first := make(chan struct{})
	l.of[key] = append(behind, first)
	return first
}

// leave lets the next of the line be the first.
func (l *pauseLines) leave(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := l.of[key]
	if len(behind) == 0 {
		delete(l.of, key)
		return
	}
	close(behind[0])
	l.of[key] = behind[1:]
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
