package redisstore

import (
	"context"
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

const (
	// A batch has at most this many requests of each shard, unless one call alone has more: above
	// some fifty little is gained, and the server serves no other client while it decides.
	maxBatch = 256

	// From this many waiting calls on, two batches are under way at once: while the server decides
	// one, the other travels. With fewer, one larger batch costs less.
	manyCalls = 48

	// After this time, waiting calls stop waiting for a batch in flight: it may be only its
	// connection that is slow. The next call notices it, for at most maxLate batches at once.
	defaultPatience = 200 * time.Millisecond
	maxLate         = 4
)

// call is one caller's requests, which are decided together. It holds copies, because the caller
// may leave while they are decided.
type call struct {
	requests  []headgate.Request
	names     []string // of the keys in Redis
	decisions []headgate.Decision
	mode      mode

	err  error
	done chan struct{} // receives once the call is answered
	sent bool          // under the lock of its queue

	request  [1]headgate.Request
	name     [1]string
	decision [1]headgate.Decision
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

func (s *Store) newCall(rs []headgate.Request, m mode) *call {
	c, _ := calls.Get().(*call)
	c.mode = m
	if len(rs) == 1 {
		c.requests, c.names, c.decisions = c.request[:], c.name[:], c.decision[:]
	} else {
		c.requests = make([]headgate.Request, len(rs))
		c.names = make([]string, len(rs))
		c.decisions = make([]headgate.Decision, len(rs))
	}
	copy(c.requests, rs)
	for i := range rs {
		c.names[i] = s.key(rs[i].Key, rs[i].Limit.ID())
		if rs[i].Start != nil {
			start := *rs[i].Start // the caller may leave
			c.requests[i].Start = &start
		}
	}
	return c
}

// copyStarts gives the caller the start times of what was granted.
func (c *call) copyStarts(rs []headgate.Request) {
	for i := range rs {
		if rs[i].Start == nil || rs[i].Cost <= 0 {
			continue
		}
		if !headgate.Granted(rs, c.decisions) {
			return
		}
		*rs[i].Start = *c.requests[i].Start
	}
}

// take copies the answer to ds, and frees c for reuse. No queue may hold c.
func (c *call) take(rs []headgate.Request, ds []headgate.Decision) error {
	copy(ds, c.decisions)
	err := c.err
	if err == nil {
		c.copyStarts(rs)
	}
	*c = call{done: c.done}
	calls.Put(c)
	return err
}

// queue holds the calls to one server that wait for the batch under way. There is no timer: a
// caller that finds no batch under way sends one.
//
// Each key belongs to one of two shards, and a group to that of its first key. A shard has at most
// one batch under way, so that the requests of a key are decided in the order of their calls,
// unless a batch is late.
type queue struct {
	store *Store

	mu      sync.Mutex
	waiting [2][]*call   // by shard
	busy    [2]int       // the number of the batch under way, 0 if there is none
	sent    [2]time.Time // when it began
	last    int          // the last number given to a batch
	late    int          // batches under way that are waited for no longer
}

var shardSeed = maphash.MakeSeed()

func (c *call) shard() int { return int(maphash.String(shardSeed, c.requests[0].Key) & 1) }

// do returns when c is answered or ctx ends.
func (q *queue) do(ctx context.Context, c *call) error {
	number, err := q.join(ctx, c)
	switch {
	case err != nil:
		return err
	case number == 0:
	case ctx.Done() == nil: // this goroutine has nothing else to do
		q.sendOne(number) //nolint:contextcheck // a batch is of many callers, and outlives each
	default:
		go q.run(number) //nolint:contextcheck // as above
	}
	return q.wait(ctx, c)
}

// wait returns when c, which is in the queue, is answered or ctx ends.
func (q *queue) wait(ctx context.Context, c *call) error {
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return q.leave(c, ctx.Err())
	}
}

func (q *queue) length() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return int64(len(q.waiting[0]) + len(q.waiting[1]))
}

// join puts c in the queue. If its caller must send a batch, join returns the batch's number.
func (q *queue) join(ctx context.Context, c *call) (number int, err error) {
	if err := ctx.Err(); err != nil {
		q.store.stats.notSent.Add(1)
		return 0, &notSentError{err}
	}
	shard := c.shard()
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting[0])+len(q.waiting[1]) >= q.store.queueLimit && c.mode == charge {
		q.store.stats.busy.Add(1)
		return 0, ErrBusy
	}
	q.store.stats.callers.Add(1)
	q.waiting[shard] = append(q.waiting[shard], c)
	for i, number := range q.busy { // few calls wait for the batch of the other shard, too
		late := number != 0 && number == q.busy[i] && time.Since(q.sent[i]) > q.store.patience
		if late && q.late < maxLate {
			q.release(number)
			q.late++
		}
	}
	return q.begin(), nil
}

// begin starts a batch, if one may be sent now, and returns its number, or 0.
func (q *queue) begin() int {
	const both = 2
	shard := both
	if waiting := len(q.waiting[0]) + len(q.waiting[1]); waiting == 0 {
		return 0
	} else if waiting >= manyCalls {
		shard = q.longer()
	} else if q.busy != [2]int{} {
		return 0
	}
	if shard != both && (q.busy[shard] != 0 || len(q.waiting[shard]) == 0) {
		return 0
	}
	q.last++
	now := time.Now()
	for i := range q.busy {
		if shard == both || shard == i {
			q.busy[i], q.sent[i] = q.last, now
		}
	}
	return q.last
}

// longer is the shard that has more calls waiting, of those that have no batch under way.
func (q *queue) longer() int {
	if q.busy[1] == 0 && (q.busy[0] != 0 || len(q.waiting[1]) > len(q.waiting[0])) {
		return 1
	}
	return 0
}

// release ends the wait for a batch, and reports whether there was one.
func (q *queue) release(number int) (waited bool) {
	for i := range q.busy {
		if q.busy[i] == number {
			q.busy[i] = 0
			waited = true
		}
	}
	return waited
}

// leave is called when the context of c's caller has ended with err.
func (q *queue) leave(c *call, err error) error {
	shard := c.shard()
	q.mu.Lock()
	defer q.mu.Unlock()
	if !c.sent {
		i := slices.Index(q.waiting[shard], c)
		q.waiting[shard] = slices.Delete(q.waiting[shard], i, i+1)
		q.store.stats.notSent.Add(1)
		return &notSentError{err}
	}
	select {
	case <-c.done: // just now
		return nil
	default:
		q.store.stats.unanswered.Add(1)
		return q.store.explain(err)
	}
}

// sendOne sends a batch, and leaves the next to a goroutine.
func (q *queue) sendOne(number int) {
	defer func() {
		if next := q.end(number); next != 0 {
			go q.run(next)
		}
	}()
	var few [8]*call
	q.store.send(q.take(number, few[:0]))
}

// run sends batches until none is to be sent. The answered callers run before the next batch is
// made, because those that call again at once then share it.
func (q *queue) run(number int) {
	var calls []*call
	for number != 0 {
		calls = q.take(number, calls[:0])
		q.store.send(calls)
		clear(calls)
		runtime.Gosched()
		number = q.end(number)
	}
}

// end ends a batch and begins the next. It returns 0 if there is none to send.
func (q *queue) end(number int) (next int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.release(number) {
		q.late--
		return 0
	}
	return q.begin()
}

// take moves the calls of a batch that has begun from the queue to calls. If enough others wait,
// it has a second batch sent at the same time.
func (q *queue) take(number int, calls []*call) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.waiting {
		if q.busy[i] == number {
			calls = takeShard(&q.waiting[i], calls)
		}
	}
	if other := q.begin(); other != 0 {
		go q.run(other)
	}
	return calls
}

// takeShard moves at most maxBatch requests.
func takeShard(waiting *[]*call, calls []*call) []*call {
	taken, requests := 0, 0
	for _, c := range *waiting {
		if requests += len(c.requests); requests > maxBatch && len(calls) > 0 {
			break
		}
		taken++
		c.sent = true
		calls = append(calls, c)
	}
	*waiting = slices.Delete(*waiting, 0, taken)
	return calls
}
