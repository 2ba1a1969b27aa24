package headgate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// loan is tokens of a key that this process took ahead, or is about to. It lies in the table
// of demands, whose row guards left and until; the rest changes only before there is
// something left.
type loan struct {
	lending
	key    string
	ticket uint64 // while the store knows it, what is left may be given back; 0: it may not

	size  int64 // tokens that are asked for
	left  int64 // those not used yet; 0 until the store has answered
	until int64 // they are used before this, in nanoseconds since the table was made
	timer *time.Timer

	said Decision // what the store said last
	sent int64    // and when it was asked
}

// taken is what the store gave for a loan, if it may be used before until. If not, none should
// be asked for before rest.
type taken struct{ tokens, until, rest int64 }

func newLoan(t lending, key string, size int64) *loan {
	// The key may be part of something large, or of a buffer that is used again.
	return &loan{lending: t, key: strings.Clone(key), ticket: rand.Uint64() | 1, size: size}
}

// asked says whether the store has not answered yet.
func (n *loan) asked() bool { return n != nil && n.left == 0 }

// end ends n, and tells what was left of it.
func (n *loan) end() (left int64) {
	if n == nil {
		return 0
	}
	if n.timer != nil {
		n.timer.Stop()
	}
	left, n.left = n.left, 0
	return left
}

// spend takes cost tokens of n, if it is a loan of that key and limit that has as many.
func (n *loan) spend(r *Request, now int64) (Decision, bool) {
	if n == nil || n.left < r.Cost || now >= n.until || n.limit != r.Limit || n.key != r.Key {
		return Decision{}, false
	}
	n.left -= r.Cost
	d := n.said
	d.Remaining = min(d.Remaining+n.left, n.limit.rule.capacity)
	d.ResetAfter = max(d.ResetAfter-time.Duration(now-n.sent), 0).Truncate(time.Microsecond)
	return d, true
}

// usable is the part of a term, or of what is left of a window, for which tokens are used. In the rest they are
// given back. So the clocks of store and process may run apart by as much.
func usable(term time.Duration) time.Duration { return term / 8 * 7 }

// borrow takes tokens ahead.
func (l *Lease) borrow(n *loan) taken {
	ctx, cancel := context.WithTimeout(context.Background(), n.term)
	defer cancel()
	n.sent = l.now()
	t := taken{until: n.sent + int64(usable(n.term))}
	var ds [2]Decision
	err := l.store.TakeAll(ctx, []Request{
		{Key: n.key, Limit: n.limit, Cost: n.size},
		{Key: n.key, Limit: n.pool, Cost: n.size, Ticket: n.ticket, Hold: n.term},
	}, ds[:])
	if err != nil { // they are lost, if they were taken
		l.missed(n.size, err)
		return taken{rest: l.now() + int64(n.term)}
	}
	if d := Strictest(ds[:]); !d.Allowed() {
		return taken{rest: l.now() + int64(min(max(d.RetryAfter, n.term/8), n.term))}
	}
	n.said, t.tokens = ds[0], n.size
	if n.limit.Algorithm() == AlgorithmFixedWindow && n.said.ResetAfter < n.term {
		n.ticket = 0 // it lasts longer than the window, and the next one has no use for what is left
		t.until = min(t.until, n.sent+int64(usable(n.said.ResetAfter)))
	}
	if !l.down(ctx, n) {
		t.until, t.rest = 0, l.now()+int64(n.term)/2
	}
	return t
}

// down says whether so many tokens are missing from the bucket that n may be used, after it, or
// somebody else, has taken some away if need be; and never if not the limit said so but a share of it
// ([Decision.Degraded]), which by itself knows of no others.
func (l *Lease) down(ctx context.Context, n *loan) bool {
	if n.said.Limit != n.limit {
		return false
	}
	short := n.short(n.said.Remaining)
	if short == 0 {
		return true
	}
	var ds [2]Decision
	err := l.store.TakeAll(ctx, []Request{
		{Key: n.key, Limit: n.limit, Cost: short},
		{Key: n.key, Limit: n.drain, Cost: n.most},
	}, ds[:])
	n.said = ds[0]
	return err == nil && n.said.Limit == n.limit && n.short(n.said.Remaining) == 0
}

// giveBack gives what is left of n back: if its time is over, nothing happens. Else it is lost until it has
// refilled.
func (l *Lease) giveBack(n *loan, left int64) {
	if left == 0 || n.ticket == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.term)
	defer cancel()
	rs, ds := [2]Request{
		{Key: n.key, Limit: n.limit, Cost: -left},
		{Key: n.key, Limit: n.pool, Ticket: n.ticket},
	}, [2]Decision{}
	err := l.store.TakeAll(ctx, rs[:], ds[:])
	if err == nil && !Granted(rs[:], ds[:]) {
		err = errLeaseOver
	}
	l.missed(left, err)
}

// missed notes, if l is closed, that tokens were not given back because of err.
func (l *Lease) missed(tokens int64, err error) {
	if err != nil && l.closed.Load() {
		l.unreturned.add(tokens, err)
	}
}

var errLeaseOver = errors.New("it came too late")

// unreturned is what was not given back when a Lease was closed.
type unreturned struct {
	mu     sync.Mutex
	tokens int64
	why    error // the first reason
}

func (u *unreturned) add(tokens int64, why error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.tokens += tokens
	if u.why == nil {
		u.why = why
	}
}

func (u *unreturned) err() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.why == nil {
		return nil
	}
	return fmt.Errorf("headgate: %d tokens that were taken ahead may not have been given back: %w", u.tokens, u.why)
}

// underWay counts calls that are.
type underWay struct {
	all sync.WaitGroup
	n   atomic.Int64
}

func (c *underWay) begin() { c.all.Add(1); c.n.Add(1) }
func (c *underWay) end()   { c.n.Add(-1); c.all.Done() }
