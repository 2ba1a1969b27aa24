package replay

import "container/heap"

// record is one request between the log and the limiter. It holds only what the decision needs,
// because a reorder may hold many.
type record struct {
	at     int64 // microseconds since the Unix epoch
	line   int64 // in its log; decides between records of the same time
	key    uint32
	facets uint32 // as facets.of numbers them, if a Detail is wanted
}

func (r record) before(o record) bool {
	return r.at < o.at || r.at == o.at && r.line < o.line
}

// maxHeld bounds the records of a reorder: when it is full, the oldest record leaves. At 24 bytes
// each that is 24 MB per log, reached only by more than 17,000 requests a second.
const maxHeld = 1 << 20

// reorder sorts the records of one log by time. It holds each until a line has come that is a
// window later. Records that come in order are held in a queue, which costs nothing; those that
// come late, in a heap.
type reorder struct {
	window  int64 // microseconds
	max     int
	newest  int64
	reached int64 // no record leaves with an earlier time
	late    int64 // records whose time was changed to reached
	inOrder queue
	behind  earliest[record]
}

// push adds the record of the next line.
func (o *reorder) push(r record) {
	if r.at > o.newest {
		o.newest = r.at
		o.reached = max(o.reached, o.newest-o.window)
	}
	if r.at < o.reached {
		r.at = o.reached
		o.late++
	}
	if o.inOrder.len() == 0 || !r.before(o.inOrder.last()) {
		o.inOrder.push(r)
	} else {
		heap.Push(&o.behind, r)
	}
	if o.len() >= o.max {
		o.reached = max(o.reached, o.first().at)
	}
}

func (o *reorder) len() int { return o.inOrder.len() + len(o.behind) }

// ready reports whether no later line can come before the first record.
func (o *reorder) ready() bool { return o.len() > 0 && o.first().at <= o.reached }

func (o *reorder) first() record {
	if o.behindFirst() {
		return o.behind[0]
	}
	return o.inOrder.first()
}

func (o *reorder) pop() record {
	if o.behindFirst() {
		return heap.Pop(&o.behind).(record) //nolint:forcetypeassert // it holds no other
	}
	return o.inOrder.pop()
}

func (o *reorder) behindFirst() bool {
	return len(o.behind) > 0 && (o.inOrder.len() == 0 || o.behind[0].before(o.inOrder.first()))
}

// queue is a ring: first in, first out.
type queue struct {
	ring       []record // its length is a power of two, or 0
	head, tail uint     // counted without wrapping
}

func (q *queue) len() int      { return int(q.tail - q.head) }
func (q *queue) first() record { return q.ring[q.head&uint(len(q.ring)-1)] }
func (q *queue) last() record  { return q.ring[(q.tail-1)&uint(len(q.ring)-1)] }

func (q *queue) push(r record) {
	if q.len() == len(q.ring) {
		q.grow()
	}
	q.ring[q.tail&uint(len(q.ring)-1)] = r
	q.tail++
}

func (q *queue) pop() record {
	r := q.first()
	q.head++
	return r
}

func (q *queue) grow() {
	ring := make([]record, max(64, 2*len(q.ring)))
	n := uint(q.len())
	for i := range n {
		ring[i] = q.ring[(q.head+i)&uint(len(q.ring)-1)]
	}
	q.ring, q.head, q.tail = ring, 0, n
}
