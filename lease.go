package headgate

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"
)

// What [LeaseOptions] are if they are 0.
const (
	DefaultLeaseShare = 0.1
	DefaultLeaseTerm  = 100 * time.Millisecond
	DefaultLeaseKeys  = 4096
)

// LeaseOptions are the settings of a [Lease]. The zero value is good. All processes that
// share a store should have the same.
type LeaseOptions struct {
	// Share is how much of a limit's capacity may be lent at a time, to all processes
	// together: above 0 and at most a quarter; [DefaultLeaseShare] if 0. Half of that is the most
	// that a process takes at once.
	Share float64

	// Term is for how long tokens are lent at most: whole milliseconds, up to a minute;
	// [DefaultLeaseTerm] if 0. Under a limit that refills half of Share in less, they are
	// lent for as long as that takes; under one that does so in less than an eighth of
	// Term, none are. It should be 20 round trips to the store or more.
	Term time.Duration

	// Keys is for how many keys demand is counted, 66 bytes each, at most 2^24;
	// [DefaultLeaseKeys] if 0. It should be several times the number of keys that are hot.
	Keys int
}

// Lease is a store around a store that many processes share. It takes tokens of hot keys
// ahead, as many as were granted lately, so that most of their requests are decided in this
// process, in a fraction of a microsecond; what is not used is given back. All other requests
// go through, and a key that is not hot costs no call more than without. Make one with
// [NewLease]; it is safe for use by many goroutines.
//
// A key is hot if this process was granted something 16 times within a Term. Tokens are taken
// ahead by a call of its own, and nobody waits for that: until its answer comes requests ask the store. When an eighth is left of
// them, or of their time, the next are taken, so that in a steady stream requests ask the store no more. A denial is
// always the store's.
//
// Never more is granted than the limit says, by the clock of the store, provided that the clocks of
// store and process run at the same pace, to an eighth. Only what makes a bucket fuller than by its refill while tokens
// are lent lets them be used on top, up to a Share of the capacity each time: a store whose clock jumps ahead or that
// loses writes, a [Lease.Reset], a change of a limit's numbers; and whatever else is given back, as by
// [Limiter.Refund], [Reservation.Cancel] and [Reservation.Commit], however soon, and then no more than that.
//
// It may be less, for a key that is hot or was. Up to a Share may lie in other processes, for a Term at most; what a
// process has that dies, or that cannot reach the store, is lost until it has refilled. Up to twice the Share is taken out of a
// bucket and not used, because it refills while
// tokens are lent: so a burst finds up to three times the Share of its capacity less, besides what was used. That lasts until the
// bucket has refilled, also when the key has grown cold or the Lease is closed: 400 tokens of
// TokenBucket(2000, 1000, time.Second) are back in 0.4 s, those of TokenBucket(2000, 1, time.Hour) in 400 hours. So do not put a Lease around
// limits that refill slowly. The rate suffers none of that. Of a fixed window what is not used at its end is lost.
//
// What takes part are requests of [Store.Take] with a cost above 0 and nothing else said, under token buckets,
// stepped ones and fixed windows of at least 32 / Share tokens, and at most a 32nd of Share at a time. The
// sliding ones would forget too early what was taken ahead, so they go through, and so does [Store.TakeAll], which is how a
// [Limiter] asks several limits. A look, such as [Limiter.Peek], tells what the store has.
//
// A [DenyCache] beside it goes inside: so it notices what is taken ahead and given back, and does not deny what this
// process has ahead. So does a fallback.Store; nothing is taken ahead while that decides by itself. [Observe] goes outside.
//
// In a decision made here, Remaining and ResetAfter are what the store said last, and what is
// left of the tokens.
type Lease struct {
	store   Store
	share   float64
	term    time.Duration
	made    time.Time // has a monotonic reading
	demands demands
	closed  atomic.Bool
	calls   underWay // that take ahead or give back

	unreturned unreturned // when it was closed
}

var _ Store = (*Lease)(nil)

// NewLease makes a Lease around store. It returns an [*InvalidError] if store is nil or
// one of o is out of the range that [LeaseOptions] tells.
func NewLease(store Store, o LeaseOptions) (*Lease, error) {
	if err := validateStore(store); err != nil {
		return nil, err
	}
	if o.Share == 0 {
		o.Share = DefaultLeaseShare
	}
	if o.Term == 0 {
		o.Term = DefaultLeaseTerm
	}
	if o.Keys == 0 {
		o.Keys = DefaultLeaseKeys
	}
	switch {
	case !(o.Share > 0 && o.Share <= 0.25): // nor NaN
		return nil, &InvalidError{Field: "share", Value: strconv.FormatFloat(o.Share, 'g', -1, 64), Want: "above 0 and at most 0.25, the part of a limit that is lent at a time"}
	case o.Term < time.Millisecond || o.Term > time.Minute || o.Term%time.Millisecond != 0:
		return nil, &InvalidError{Field: "term", Value: o.Term.String(), Want: "whole milliseconds, from 1ms to 1m"}
	case o.Keys < 0 || o.Keys > 1<<24:
		return nil, invalid("keys", int64(o.Keys), "from 1 to 16777216, or 0 for "+strconv.Itoa(DefaultLeaseKeys))
	}
	return &Lease{store: store, share: o.Share, term: o.Term, made: time.Now(), demands: newDemands(o.Keys, int64(o.Term))}, nil
}

// now is the time in nanoseconds since l was made.
func (l *Lease) now() int64 { return int64(time.Since(l.made)) }

// Take implements [Store].
func (l *Lease) Take(ctx context.Context, r Request) (Decision, error) {
	if !lends(&r) {
		return l.store.Take(ctx, r)
	}
	row, hash := l.demands.row(r.Key, r.Limit)
	if d, ok := l.spend(row, hash, &r); ok { //nolint:contextcheck // what is taken ahead outlives the request
		return d, nil
	}
	d, err := l.store.Take(ctx, r)
	if err == nil && d.Allowed() {
		l.granted(row, hash, &r) //nolint:contextcheck // what is taken ahead outlives the request
	}
	return d, err
}

// lends says whether r may be decided by what was taken ahead.
func lends(r *Request) bool {
	return r.Cost > 0 && r.MaxWait == 0 && r.Ticket == 0 && r.Hold == 0 && r.At.IsZero() &&
		r.Limit.rule != nil && r.Limit.rule.valid && r.Limit.rule.algorithm <= AlgorithmFixedWindow
}

// spend decides r by what was taken ahead, if there is enough.
func (l *Lease) spend(row *demandRow, hash uint64, r *Request) (Decision, bool) {
	row.mu.Lock()
	defer row.mu.Unlock()
	d := row.find(hash)
	if d == nil || d.loan == nil {
		return Decision{}, false
	}
	now := l.now()
	n := d.loan
	said, ok := n.spend(r, now)
	if !ok {
		n = d.next
		said, ok = n.spend(r, now)
	}
	if !ok {
		return Decision{}, false
	}
	d.count(r.Cost, now, l.demands.span)
	if d.low(now) {
		if next := l.lend(d, r, now); next != nil {
			d.next = next
			go l.renew(row, next, nil, 0)
		}
	}
	if n.left == 0 {
		n.end()
		d.remove(n)
	}
	return said, true
}

// granted counts r, which the store granted, and takes tokens ahead if its key is hot.
func (l *Lease) granted(row *demandRow, hash uint64, r *Request) {
	row.mu.Lock()
	defer row.mu.Unlock()
	now := l.now()
	d := row.begin(hash, now, l.demands.span)
	if d == nil {
		return
	}
	d.count(r.Cost, now, l.demands.span)
	if d.loan.asked() || d.next != nil {
		return
	}
	if n := l.lend(d, r, now); n != nil {
		old, left := d.loan, d.loan.end()
		d.loan = n
		go l.renew(row, n, old, left)
	}
}

// lend makes a loan for d, whose last request was r, and counts a call for it; or nil if it is not to have one now.
func (l *Lease) lend(d *demand, r *Request, now int64) *loan {
	if !d.hot() || now < d.rest || l.closed.Load() {
		return nil
	}
	d.rest = now + int64(l.term)
	lent, ok := lendingOf(r.Limit, l.share, l.term)
	tokens, takes := d.lately()
	if !ok || lent.most/leastTakes < tokens/takes {
		return nil
	}
	d.rest = now + int64(lent.term)/8
	l.calls.begin()
	return newLoan(lent, r.Key, lent.sizeFor(tokens, l.term))
}

// renew takes tokens for n ahead, after what was left of the loan before, which was not enough for
// a request, has been given back.
func (l *Lease) renew(row *demandRow, n, old *loan, left int64) {
	defer l.calls.end()
	l.giveBack(old, left)
	t := l.borrow(n)
	if !l.begin(row, n, t) {
		l.giveBack(n, t.tokens)
	}
}

// begin lets n be used, or says that t is to be given back.
func (l *Lease) begin(row *demandRow, n *loan, t taken) bool {
	row.mu.Lock()
	defer row.mu.Unlock()
	d := row.of(n)
	if d == nil {
		return true // the key was reset, and t may have been forgotten then: to give it back would be too much
	}
	now := l.now()
	if now >= t.until || l.closed.Load() {
		d.remove(n)
		d.rest = max(d.rest, t.rest)
		return false
	}
	n.left, n.until = t.tokens, t.until
	n.timer = time.AfterFunc(time.Duration(n.until-now), func() { l.over(row, n) })
	return true
}

// over gives back what is left of n at the end of its time.
func (l *Lease) over(row *demandRow, n *loan) {
	if left := l.drop(row, n); left > 0 {
		l.finish(n, left)
	}
}

// finish gives back what drop left.
func (l *Lease) finish(n *loan, left int64) {
	defer l.calls.end()
	l.giveBack(n, left)
}

// drop ends n, and counts a call if there is something to give back.
func (l *Lease) drop(row *demandRow, n *loan) (left int64) {
	row.mu.Lock()
	defer row.mu.Unlock()
	if d := row.of(n); d != nil {
		d.remove(n)
	}
	if left = n.end(); left > 0 {
		l.calls.begin()
	}
	return left
}

// TakeAll implements [Store], and goes through.
func (l *Lease) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	return l.store.TakeAll(ctx, rs, ds)
}

// Reset implements [Store]. What this process took ahead for key is forgotten as well. What other
// processes have of it they may still use: at most a Share of the capacity.
func (l *Lease) Reset(ctx context.Context, key string, limit Limit) error {
	if limit.Validate() == nil {
		row, hash := l.demands.row(key, limit)
		row.forget(hash)
		defer row.forget(hash) // what was taken ahead meanwhile
	}
	return l.store.Reset(ctx, key, limit)
}

// Close gives back the tokens that this process has and waits until that is done, or until ctx has ended: give it a context with
// time, not one that has ended because the process is to stop. From now on all requests go
// through. An error says how many tokens the store may not have got back, and why, or that ctx, whose error is in it, ended
// first: they are lost until they have refilled. So is what a process has that dies, or does not close its Lease, and without an
// error what it has of a fixed window that ends within a Term. What was kept out of a bucket of a hot key, see [Lease], is not
// given back: other processes may count on it. It flows in again.
func (l *Lease) Close(ctx context.Context) error {
	l.closed.Store(true)
	for i := range l.demands.rows {
		row := &l.demands.rows[i]
		for _, n := range row.loans() {
			if left := l.drop(row, n); left > 0 {
				go l.finish(n, left) //nolint:contextcheck // Close ends with ctx, what it sent is over with the term
			}
		}
	}
	done := make(chan struct{})
	go func() {
		l.calls.all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return l.unreturned.err()
	case <-ctx.Done():
		if l.calls.n.Load() == 0 { // nothing was left to do
			return l.unreturned.err()
		}
		return fmt.Errorf("headgate: %w before all that was taken ahead was given back", ctx.Err())
	}
}
