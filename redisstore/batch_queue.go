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
	// A trip has at most this many requests, unless one call alone has more: above some fifty
	// little is gained, and the server serves no other client while it decides.
	maxBatch = 256

	// After this time, calls wait no longer for a trip under way: it may be only its connection
	// that is slow. The next call notices it, for at most maxLate trips at once.
	defaultPatience = 200 * time.Millisecond
	maxLate         = 4

	// Each key belongs to a shard. With some hundred calls under way, few keys share one.
	shards = 4096
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

	shard uint16 // of its queue
	sent  bool   // under the lock of its queue

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
	c.shard = shardOf(rs[0].Key)
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
		if rs[i].Start == nil || rs[i].Cost <= 0 || rs[i].Force {
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

// queue holds the calls to one server that wait to be sent. There is no timer: calls leave when one
// joins, or when a trip ends.
//
// A call belongs to the shard of its first key. The calls of a shard wait for the trip under way
// that has others of it, so that the requests of a key are decided in the order of their calls,
// unless a trip is late. All others leave together once one more trip is worthwhile.
type queue struct {
	store *Store

	mu       sync.Mutex
	pace     pace
	waiting  int           // calls that are not sent
	ready    []*call       // of shards that have no trip under way
	starting bool          // a trip is about to take those
	underWay []*trip       // the oldest first
	late     int           // trips under way that are waited for no longer
	busy     [shards]*trip // under way
}

// trip is calls that are sent together.
type trip struct {
	calls  []*call
	shards []uint16 // of the calls
	behind []*call  // that wait for it
	sent   time.Time
}

var (
	trips     = sync.Pool{New: func() any { return new(trip) }}
	shardSeed = maphash.MakeSeed()
)

func shardOf(key string) uint16 { return uint16(maphash.String(shardSeed, key) % shards) }

// do returns when c is answered or ctx ends.
func (q *queue) do(ctx context.Context, c *call) error {
	mustSend, err := q.join(ctx, c)
	if mustSend {
		go q.run() //nolint:contextcheck // a trip is of many callers, and outlives each
	}
	if err != nil {
		return err
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
	return int64(q.waiting)
}

// join puts c in the queue, unless it fails, and reports whether its caller must have a trip sent.
func (q *queue) join(ctx context.Context, c *call) (mustSend bool, err error) {
	if err := ctx.Err(); err != nil {
		q.store.stats.notSent.Add(1)
		return false, &notSentError{err}
	}
	now := time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.underWay) > 0 && q.late < maxLate && now.Sub(q.underWay[0].sent) > q.store.patience {
		q.release(q.underWay[0])
		q.late++
	}
	if q.waiting >= q.store.queueLimit && c.mode == charge {
		q.store.stats.busy.Add(1)
		return q.begin(now), ErrBusy
	}
	q.store.stats.callers.Add(1)
	q.waiting++
	line := q.line(c)
	*line = append(*line, c)
	return q.begin(now), nil
}

// line is where c waits.
func (q *queue) line(c *call) *[]*call {
	if t := q.busy[c.shard]; t != nil {
		return &t.behind
	}
	return &q.ready
}

// begin reports whether a trip must be sent now.
func (q *queue) begin(now time.Time) bool {
	if q.starting || len(q.ready) == 0 {
		return false
	}
	n := len(q.underWay)
	q.starting = n == 0 || q.pace.allows(n, len(q.ready), now.Sub(q.underWay[n-1].sent))
	return q.starting
}

// leave is called when the context of c's caller has ended with err.
func (q *queue) leave(c *call, err error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !c.sent {
		line := q.line(c)
		i := slices.Index(*line, c)
		*line = slices.Delete(*line, i, i+1)
		q.waiting--
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

// run sends trips until none must be sent.
func (q *queue) run() {
	for next := true; next; {
		t := q.fill()
		answered := q.store.send(t.calls)
		took := time.Since(t.sent)
		runtime.Gosched() // callers that are answered, and call again at once, share the next trip
		next = q.end(t, took, answered)
	}
}

// fill moves the calls that are ready to a trip. If there are more than fit, others follow.
func (q *queue) fill() *trip {
	t, _ := trips.Get().(*trip)
	q.mu.Lock()
	defer q.mu.Unlock()
	stay, requests, full := q.ready[:0], 0, false
	for _, c := range q.ready {
		full = full || requests > 0 && requests+len(c.requests) > maxBatch
		switch {
		case !full:
			c.sent, q.busy[c.shard] = true, t
			t.calls, t.shards = append(t.calls, c), append(t.shards, c.shard)
			requests += len(c.requests)
		case q.busy[c.shard] == t:
			t.behind = append(t.behind, c)
		default:
			stay = append(stay, c)
		}
	}
	clear(q.ready[len(stay):])
	t.sent = time.Now()
	q.ready, q.starting, q.underWay = stay, false, append(q.underWay, t)
	q.waiting -= len(t.calls)
	if q.begin(t.sent) {
		go q.run()
	}
	return t
}

// release has nobody wait for t any more, and reports whether somebody did.
func (q *queue) release(t *trip) (waited bool) {
	i := slices.Index(q.underWay, t)
	if i < 0 {
		return false
	}
	for _, shard := range t.shards {
		q.busy[shard] = nil
	}
	q.ready = append(q.ready, t.behind...)
	q.underWay = slices.Delete(q.underWay, i, i+1)
	return true
}

// end ends a trip that took some time, and reports whether another one must be sent.
func (q *queue) end(t *trip, took time.Duration, answered bool) (next bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.release(t) {
		q.late--
	}
	now := t.sent.Add(took)
	if len(t.calls) > 0 { // else all callers have left
		q.pace.ended(now, took, answered)
	}
	clear(t.calls)
	clear(t.behind)
	*t = trip{calls: t.calls[:0], shards: t.shards[:0], behind: t.behind[:0]}
	trips.Put(t)
	return q.begin(now)
}
