package headgate

import (
	"strings"
	"sync"
	"sync/atomic"
)

// denials are a few places of a [DenyCache], under a lock of their own, that some of the
// keys have to share.
type denials struct {
	mu      sync.Mutex
	changes uint64 // how often the state of one of the keys has changed
	of      [4]denial

	served, asked atomic.Uint64 // see DenyCacheStats
}

// denial is what is known of a key under a limit.
type denial struct {
	hash  uint64
	key   string
	asked instant
	outlook
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
	key     string
	l       *rule
	cost    int64
	hash    uint64
	asked   instant
	changes uint64 // as it was then
}

// answer is the verdict on q, if all of it is known by what was asked since trust began.
func (q *question) answer(trust int64) (v verdict, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changes = q.denials.changes
	e := q.find()
	if e == nil || e.l != q.l || e.asked.given != q.asked.given || q.asked.own-e.asked.own >= trust {
		return verdict{}, false
	}
	elapsed := q.asked.at - e.asked.at
	if elapsed < 0 {
		return verdict{}, false
	}
	if !q.asked.given {
		elapsed++ // of which some may have been rounded off
	}
	return e.at(q.cost, elapsed)
}

// find is what is known of the key under any version of the limit.
func (q *question) find() *denial {
	for i := range q.of {
		e := &q.of[i]
		if e.hash == q.hash && e.l != nil && (e.l == q.l || e.l.id == q.l.id) && e.key == q.key {
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
	case e != nil && e.asked.given == q.asked.given && q.asked.own-e.asked.own < trust && e.agrees(&next, q.asked.at-e.asked.at, e.margin, margin):
		return q.add(e, next)
	default:
		q.replace(e, next, margin)
	}
	return false
}

// add adds what next knows to e, which is of the same state. What e does not know after
// that is when the first token fits, if nothing is left.
func (q *question) add(e *denial, next outlook) (unsure bool) {
	elapsed := q.asked.at - e.asked.at
	if next.next > 0 {
		e.learn(next.known[0].cost, elapsed+next.known[0].retry)
	}
	_, sure := e.remainingAt(elapsed)
	return !sure && next.remaining == 0
}

// replace puts next in the place of e, or else in the one that was free or asked for first.
func (q *question) replace(e *denial, next outlook, margin int64) {
	if e == nil {
		e = &q.of[0]
		for i := range q.of {
			if f := &q.of[i]; f.asked.own < e.asked.own {
				e = f
			}
		}
		e.key = strings.Clone(q.key) // which may lie in something large
	}
	*e = denial{hash: q.hash, key: e.key, asked: q.asked, outlook: next, margin: margin}
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
