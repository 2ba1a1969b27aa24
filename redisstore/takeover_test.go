package redisstore

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// leavers is a lane that waits on a batch, with so many in its queue who have left: a sender of theirs
// sends nothing.
func leavers(n int) *lane {
	l := &lane{store: &Store{patience: time.Hour}, busy: true, gone: n, since: time.Now()}
	for range n {
		l.queue = append(l.queue, &ask{left: true})
	}
	return l
}

// watched says whether takeOver is going to be called, and no longer has it called.
func (l *lane) watched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watch != nil && l.watch.Stop()
}

// Those who wait are sent without the batch under way once that is late, and no sooner, unless too many
// are; as long as somebody waits, it is looked at again.
func TestTakeOver(t *testing.T) {
	for name, c := range map[string]struct {
		waiting, lost int
		age           time.Duration
		over, watched bool
	}{
		"late":                    {waiting: 1, age: 2 * time.Hour, over: true},
		"late, as others before":  {waiting: 1, lost: maxLost - 1, age: 2 * time.Hour, over: true},
		"as many are late as may": {waiting: 1, lost: maxLost, age: 2 * time.Hour, watched: true},
		"sent just now":           {waiting: 1, age: time.Second, watched: true},
		"late, and nobody waits":  {age: 2 * time.Hour},
	} {
		l := leavers(c.waiting)
		l.lost, l.since = c.lost, time.Now().Add(-c.age)
		l.takeOver()
		l.mu.Lock()
		senders, lost := l.sender, l.lost
		l.mu.Unlock()
		if over := senders == 1 && lost == c.lost+1; over != c.over || !over && (senders != 0 || lost != c.lost) {
			t.Errorf("%s: %d senders, %d batches are lost", name, senders, lost)
		}
		if watched := l.watched(); watched != c.watched {
			t.Errorf("%s: watched: %t", name, watched)
		}
	}
}

// Whom a batch leaves behind is watched over, and an empty queue is not.
func TestWatchedAfterABatch(t *testing.T) {
	for waiting, watched := range map[int]bool{maxBatch: false, maxBatch + 1: true} {
		l := leavers(0)
		for range waiting {
			l.queue = append(l.queue, &ask{requests: make([]headgate.Request, 1)})
		}
		l.wake(time.Hour)
		if l.watch.Stop(); waiting == maxBatch {
			l.wake(time.Hour)
		}
		if l.next(nil); len(l.queue) != waiting-maxBatch || l.watched() != watched {
			t.Errorf("%d waited: %d do, watched: %t", waiting, len(l.queue), !watched)
		}
	}
}
