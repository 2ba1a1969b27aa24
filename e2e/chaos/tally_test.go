package chaos

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// tally counts what callers were answered.
type tally struct {
	begin time.Time

	mu       sync.Mutex
	accounts map[string]*account // by key and limit
	answered map[string]time.Duration
	texts    map[string]int // of errors
	calls    int
	errors   []time.Duration // when they came
	answer   time.Duration   // when the last one came
	stall    time.Duration   // the longest time without an answer
}

// account is what was granted of one key under one limit.
type account struct {
	key    string
	limit  headgate.Limit
	first  time.Duration // when the first call began
	grants []grant
	errors int64 // each may have been charged
}

// grant is a token that was granted between start and end.
type grant struct{ start, end time.Duration }

func (a *account) isLedger() bool { return a.limit.Capacity() >= 100_000 }

func newTally() *tally {
	return &tally{begin: time.Now(), accounts: make(map[string]*account), answered: make(map[string]time.Duration), texts: make(map[string]int)}
}

func (n *tally) now() time.Duration { return time.Since(n.begin) }

// record takes down what came of one call.
func (n *tally) record(key string, start, end time.Duration, ds []headgate.Decision, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls++
	if err != nil {
		n.errors = append(n.errors, end)
		n.texts[plain(err.Error())]++
	} else {
		n.stall = max(n.stall, end-n.answer)
		n.answer = max(n.answer, end)
		n.answered[key] = max(n.answered[key], start)
	}
	granted := err == nil
	for _, d := range ds {
		granted = granted && d.Allowed()
	}
	for _, r := range requests(key) {
		a := n.account(r.Key, r.Limit, start)
		switch {
		case err != nil:
			a.errors++
		case granted:
			a.grants = append(a.grants, grant{start, end})
		}
	}
}

func (n *tally) account(key string, l headgate.Limit, start time.Duration) *account {
	id := key + " " + l.ID()
	a := n.accounts[id]
	if a == nil {
		a = &account{key: key, limit: l, first: start}
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

// awaitAnswers returns when each key that is asked for often has been answered to a call
// that began later than since.
func (n *tally) awaitAnswers(t *testing.T, since time.Duration) {
	t.Helper()
	until(t, "all keys answered again", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for _, key := range wanted() {
			if n.answered[key] <= since {
				return false
			}
		}
		return true
	})
}
