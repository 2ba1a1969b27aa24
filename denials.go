package headgate

import (
	"strings"
	"sync"
	"sync/atomic"
)

// denials are the places of a [DenyCache] that some of the keys have to share. What a
// search needs lies in one cache line.
type denials struct {
	mu            sync.Mutex
	changes       uint64        // how often the state of one of the keys has changed
	served, asked atomic.Uint64 // see DenyCacheStats
	tags          [places]uint32
	of            [places]denial
}

const places = 8

// denial is what is known of a key under a limit.
type denial struct {
	key string
	outlook
	asked  instant
	margin int64 // how much later than asked it may have been decided, in microseconds
}

// instant is when something was asked, in microseconds.
type instant struct {
	own   int64 // by the clock of this process
	at    int64 // by the time that the request was given, or else the same
	given bool
}

// question is a request that may be answered from memory.
type question struct {
	*denials
	tag     uint32
	key     string
	l       *rule
	cost    int64
	asked   instant
	changes uint64 // as it was then
}

// answer is the verdict on q, if all of it is known by what was asked since trust began.
func (q *question) answer(trust int64) (v verdict, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changes = q.denials.changes
	e := q.find()
	if e == nil || !q.believes(e, trust) {
		return verdict{}, false
	}
	elapsed := q.asked.at - e.asked.at
	if !q.asked.given {
		elapsed++ // of which some may have been rounded off
	}
	return e.at(q.cost, elapsed)
}

// believes says whether e tells anything about q.
func (q *question) believes(e *denial, trust int64) bool {
	return e.l == q.l && e.asked.given == q.asked.given && q.asked.own-e.asked.own < trust && q.asked.at >= e.asked.at
}

// find is what is known of the key under any version of the limit.
func (q *question) find() *denial {
	for i, tag := range q.tags {
		if tag != q.tag {
			continue
		}
		e := &q.of[i]
		if e.l != nil && (e.l == q.l || e.l.id == q.l.id) && e.key == q.key {
			return e
		}
	}
	return nil
}

// count counts a request that was answered here, or was not.
func (q *question) count(served bool) {
	if served {
		q.served.Add(1)
	} else {
		q.denials.asked.Add(1)
	}
}

// learn takes over what d foretells, the answer of the store that came margin after q was
// asked, unless the key may have changed meanwhile. It tells whether it would help to know
// when one token fits.
func (q *question) learn(d Decision, trust, margin int64) (unsure bool) {
	next, ok := foretold(q.l, d, q.cost)
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.find()
	switch {
	case !ok || q.changes != q.denials.changes:
		q.drop(e)
	case e != nil && q.believes(e, trust) && e.agrees(&next, q.asked.at-e.asked.at, e.margin, margin):
		return q.add(e, &next)
	default:
		q.replace(e, &next, margin)
	}
	return false
}

// add adds what next knows to e, which is of the same state. What e does not know after
// that is when the first token fits, if nothing is left.
func (q *question) add(e *denial, next *outlook) (unsure bool) {
	elapsed := q.asked.at - e.asked.at
	if next.next > 0 {
		e.learn(next.known[0].cost, elapsed+next.known[0].retry)
	}
	_, sure := e.remainingAt(elapsed)
	return !sure && next.remaining == 0
}

// replace puts next in the place of e, or else in the one that is free or was asked for first.
func (q *question) replace(e *denial, next *outlook, margin int64) {
	if e == nil {
		e = q.first()
		e.key = strings.Clone(q.key) // which may lie in something large
	}
	*e = denial{key: e.key, outlook: *next, asked: q.asked, margin: margin}
}

// first is the place that was asked for first, with the tag of q.
func (q *question) first() *denial {
	first := 0
	for i := range q.of {
		if q.of[i].asked.own < q.of[first].asked.own {
			first = i
		}
	}
	q.tags[first] = q.tag
	return &q.of[first]
}

// forget forgets what is known of the key, and what others are about to learn.
func (q *question) forget() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.denials.changes++
	q.drop(q.find())
}

func (q *question) drop(e *denial) {
	if e != nil {
		*e = denial{}
	}
}
