package chaos

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// tally counts what the callers of a stack were answered.
type tally struct {
	stack stack
	begin time.Time

	mu       sync.Mutex
	accounts map[string]*account      // by key and limit
	answered map[string]time.Duration // to keys and instances, by the store
	texts    map[string]int           // of errors
	calls    int
	errors   int
	instead  int             // calls that not the store answered
	shared   shared          // of the bare stack
	trouble  []time.Duration // when errors came, and answers that were not the store's
	stall    time.Duration   // the longest that a caller was kept waiting
}

// call is what a caller asked of an instance, and what came of it.
type call struct {
	instance   int
	key        string
	cost       int64
	start, end time.Duration
	ds         []headgate.Decision
	err        error
}

// account is what was granted of one key under one limit.
type account struct {
	key    string
	limit  headgate.Limit
	stored string             // the key in Redis
	first  time.Duration      // when the first call began
	grants []grant            // of the store
	own    [instances][]grant // of the instances, by themselves
	away   away
	errors int64 // tokens that may have been charged
}

// away is what was asked for while the store was unavailable.
type away struct {
	calls, tokens int64 // may have been charged, too
	since, last   time.Duration
}

// grant is a number of tokens that were granted between start and end. A refund is a negative
// number, and start and end are exchanged: it may count in each interval that it touches, where a
// grant counts in those that hold it whole.
type grant struct {
	start, end time.Duration
	n          int64
}

// tokens returns how many were granted in all.
func tokens(grants []grant) (sum int64) {
	for _, g := range grants {
		sum += g.n
	}
	return sum
}

func (a *account) isLedger() bool { return a.limit.Capacity() >= 100_000 }

// booked reports whether grants may start ahead. Callers do not see whether such a grant is the
// store's or an instance's own.
func (a *account) booked() bool { return loadOf(a.key).way != allows }

// ownGrants are those that not the store gave.
func (a *account) ownGrants() (all []grant) {
	for _, own := range a.own {
		all = append(all, own...)
	}
	return all
}

func newTally(k stack, begin time.Time) *tally {
	return &tally{stack: k, begin: begin, accounts: make(map[string]*account), answered: make(map[string]time.Duration), texts: make(map[string]int)}
}

func (n *tally) now() time.Duration { return time.Since(n.begin) }

// record takes down what came of one call.
func (n *tally) record(c call) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	n.stall = max(n.stall, c.end-c.start)
	granted, degraded := c.err == nil, false
	for _, d := range c.ds {
		granted = granted && d.Allowed()
		degraded = degraded || d.Degraded()
	}
	switch {
	case c.err != nil:
		n.fail(c.err, c.end)
	case degraded:
		n.instead++
		n.trouble = append(n.trouble, c.end)
	default:
		for _, who := range []string{c.key, name(c.instance)} {
			n.answered[who] = max(n.answered[who], c.start)
		}
	}
	for i, r := range requests(c.key, c.cost) {
		a := n.account(r.Key, r.Limit, c.start)
		if c.err != nil {
			a.errors += c.cost
			continue
		}
		a.record(&c, granted, c.ds[i].Degraded())
	}
}

// fail counts an error.
func (n *tally) fail(err error, at time.Duration) {
	n.errors++
	n.texts[plain(err.Error())]++
	n.trouble = append(n.trouble, at)
}

// record takes down a decision. Whose it was it tells itself.
func (a *account) record(c *call, granted, degraded bool) {
	g := grant{c.start, c.end, c.cost}
	if degraded {
		if a.away.calls == 0 {
			a.away.since = c.start
		}
		a.away.calls++
		a.away.tokens += c.cost
		a.away.since, a.away.last = min(a.away.since, c.start), max(a.away.last, c.end)
	}
	switch {
	case granted && degraded:
		a.own[c.instance] = append(a.own[c.instance], g)
	case granted:
		a.grants = append(a.grants, g)
	}
}

func (n *tally) account(key string, l headgate.Limit, start time.Duration) *account {
	id := key + " " + l.ID()
	a := n.accounts[id]
	if a == nil {
		a = &account{key: key, limit: l, first: start, stored: n.stack.prefix() + "{" + key + "}:" + l.ID()}
		n.accounts[id] = a
	}
	a.first = min(a.first, start)
	return a
}

// plain is an error's text without what differs from one to the next.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '#'
		}
		return r
	}, text)
}

func (n *tally) told(word string) bool {
	for text := range n.texts {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// awaitAnswers returns when the store has answered to calls that began later than since: for each key
// that is asked for often, or, where instances leave it alone at times, to each of them.
func (n *tally) awaitAnswers(t *testing.T, since time.Duration) {
	t.Helper()
	until(t, n.stack.name+": answered again", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, who := range n.awaited() {
			if n.answered[who] <= since {
				return false
			}
		}
		return true
	})
}

func (n *tally) awaited() []string {
	if n.stack.bare {
		return wanted()
	}
	var all []string
	for i := range instances {
		all = append(all, name(i))
	}
	return all
}

// name is that of an instance, and of no key.
func name(instance int) string { return "instance " + strconv.Itoa(instance) }
