package redisstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A batch holds at most this many requests, unless one ask alone has more. Above some
// fifty little is gained, and the server answers nobody else while it decides.
const maxBatch = 256

// defaultPatience is how long a batch may be under way until those who wait are sent without
// it: over another connection, for what holds it up may be its own.
const defaultPatience = 200 * time.Millisecond

// maxLost bounds how many batches of a lane may be under way beyond their time.
const maxLost = 4

// lane is a queue of asks of which one batch at a time is under way: those who come meanwhile
// share the next. A key keeps to its lane, so that its requests are decided in the
// order in which they came; but for a batch that takes too long, which is left to itself. An
// idle lane has no goroutine.
type lane struct {
	store *Store

	mu    sync.Mutex
	queue []*ask
	gone  int // how many of the queue have left

	sender int         // the number of the one who sends, if busy is set
	busy   bool        // a batch is under way, or about to be
	since  time.Time   // when it was sent, or the last before
	closed bool        // nobody may join any more, see route.forget
	lost   int         // former senders whose batches are still under way
	watch  *time.Timer // calls takeOver while somebody waits
}

// errClosed is told to those who have found a lane just before it was closed.
var errClosed = errors.New("redisstore: the lane is closed")

// do gets a answered by the next batch, unless ctx ends before.
func (l *lane) do(ctx context.Context, a *ask) error {
	if err := ctx.Err(); err != nil {
		return notSent(err)
	}
	sender, err := l.join(a)
	switch {
	case err != nil:
		return err
	case sender != 0 && ctx.Done() == nil: // the caller would do nothing but wait
		l.sendOne(sender) //nolint:contextcheck // a batch is of many callers, and outlives each
	case sender != 0:
		go l.run(sender) //nolint:contextcheck // as above
	}
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
		return l.leave(a, ctx.Err())
	}
}

// join puts a in the queue. If it falls to its caller to have it sent, it returns the number
// of a sender, and 0 otherwise.
func (l *lane) join(a *ask) (sender int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return 0, errClosed
	}
	if len(l.queue)-l.gone >= l.store.queue && a.how == charges {
		l.store.stats.busy.Add(1)
		return 0, ErrBusy
	}
	l.store.stats.callers.Add(1)
	l.store.stats.waiting.Add(1)
	l.queue = append(l.queue, a)
	if !l.busy {
		return l.begin(), nil
	}
	if len(l.queue) == 1 {
		l.wake(l.store.patience)
	}
	return 0, nil
}

// begin makes a sender, for those who hold the lock.
func (l *lane) begin() int {
	l.busy = true
	l.since = time.Now()
	l.sender++
	return l.sender
}

// wake has takeOver called, for those who hold the lock.
func (l *lane) wake(after time.Duration) {
	if l.watch == nil {
		l.watch = time.AfterFunc(after, l.takeOver)
		return
	}
	l.watch.Reset(after)
}

// takeOver sends those who wait if the batch under way takes too long.
func (l *lane) takeOver() {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.store.patience - time.Since(l.since)
	switch {
	case !l.busy || len(l.queue) == 0:
	case left > 0:
		l.wake(left)
	case l.lost == maxLost:
		l.wake(l.store.patience)
	default:
		l.lost++
		go l.run(l.begin())
	}
}

// leave is for the caller of a, whose context has ended with err.
func (l *lane) leave(a *ask, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.sent {
		a.left = true
		l.gone++
		l.sweep()
		l.store.stats.waiting.Add(-1)
		l.store.stats.notSent.Add(1)
		return notSent(err)
	}
	select {
	case <-a.done: // just now
		return nil
	default:
		l.store.stats.unanswered.Add(1)
		return wrap(err)
	}
}

// sweep drops those who have left, once they are most of a long queue.
func (l *lane) sweep() {
	if l.gone > maxBatch && 2*l.gone > len(l.queue) {
		l.queue = slices.DeleteFunc(l.queue, func(a *ask) bool { return a.left })
		l.gone = 0
	}
}

// sendOne sends a batch, and leaves the next to a goroutine.
func (l *lane) sendOne(sender int) {
	defer l.goOn(sender)
	l.send(l.next(nil))
}

// goOn leaves what waits to a goroutine.
func (l *lane) goOn(sender int) {
	if l.more(sender) {
		go l.run(sender)
	}
}

// run sends batches until nobody waits. Those who were answered go first, since whoever of them asks again at
// once then shares the next. If the user's code ends its goroutine, another goes on.
func (l *lane) run(sender int) {
	var asks []*ask
	ok := true
	defer func() {
		if ok {
			l.goOn(sender)
		}
	}()
	for ; ok; ok = l.more(sender) {
		asks = l.next(asks[:0])
		l.send(asks)
		clear(asks)
		runtime.Gosched()
	}
}

// more says whether the sender has to go on. If nobody waits, the lane is idle.
func (l *lane) more(sender int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sender != l.sender { // another has taken over
		l.lost--
		return false
	}
	l.busy = len(l.queue) > 0
	l.since = time.Now()
	return l.busy
}

// next moves a batch from the queue to asks.
func (l *lane) next(asks []*ask) []*ask {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.since = time.Now()
	taken, requests := 0, 0
	for _, a := range l.queue {
		if requests += len(a.requests); requests > maxBatch && len(asks) > 0 {
			break
		}
		taken++
		if a.left {
			l.gone--
			requests -= len(a.requests)
			continue
		}
		a.sent = true
		asks = append(asks, a)
	}
	if l.queue = slices.Delete(l.queue, 0, taken); len(l.queue) > 0 {
		l.wake(l.store.patience)
	} else if l.watch != nil {
		l.watch.Stop()
	}
	l.store.stats.waiting.Add(-int64(len(asks)))
	return asks
}
