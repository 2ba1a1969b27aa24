package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// instance is a process of the fleet: the wire to the store, with a DenyCache and a Lease
// around it.
type instance struct {
	fleet *fleet
	store headgate.Store
	cut   atomic.Int32 // by so many partitions

	mu   sync.Mutex
	dead bool
	out  map[*ledger]loan // what it has ahead
}

// loan is tokens that an instance has ahead, and may use or give back until then.
type loan struct {
	tokens int64
	until  time.Time
}

func newInstance(f *fleet) (*instance, error) {
	i := &instance{fleet: f, out: map[*ledger]loan{}}
	denials, err := headgate.NewDenyCache(i.wire(), headgate.DenyCacheOptions{Keys: tableKeys})
	if err != nil {
		return nil, err
	}
	i.store, err = headgate.NewLease(denials, headgate.LeaseOptions{Share: share, Term: term, Keys: tableKeys})
	return i, err
}

// asking is a request on its way through an instance.
type asking struct{ decided bool } // by the store

type askingKey struct{}

// ask asks for cost tokens of k.
func (i *instance) ask(ctx context.Context, k *ledger, cost int64) {
	k.ask()
	var a asking
	d, err := i.store.Take(context.WithValue(ctx, askingKey{}, &a), headgate.Request{Key: k.key, Limit: k.limit, Cost: cost})
	c := &i.fleet.counts
	switch {
	case err != nil:
		c.unanswered.Add(1)
	case a.decided: // and noted when it was
		c.byStore.Add(1)
	case !d.Allowed():
		c.byDenyCache.Add(1)
		k.decide(cost, false)
	case i.spend(k, cost):
		c.byLease.Add(1)
		k.decide(cost, true)
	default: // it died at this moment
		c.unanswered.Add(1)
	}
}

// spend takes note that tokens taken ahead were used.
func (i *instance) spend(k *ledger, cost int64) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	n := i.out[k]
	n.tokens -= cost
	i.out[k] = n
	return !i.dead
}

// have takes note of what i has ahead of k from now on, and before.
func (i *instance) have(k *ledger, n loan) (before loan, dead bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before, i.out[k] = i.out[k], n
	return before, i.dead
}

// die ends i, with all that it has ahead.
func (i *instance) die() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dead = true
	for k, n := range i.out {
		if n.until.After(time.Now()) {
			k.lose(n.tokens)
		}
	}
}

// reaches says whether messages of i get through.
func (i *instance) reaches() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return !i.dead && i.cut.Load() == 0
}

// wire is the way of an instance to the store, on which messages get lost when it dies or is
// cut off. No message takes as long as a loan lasts.
type wire struct{ *instance }

func (i *instance) wire() wire { return wire{i} }

// errLost is what a caller gets whose question or answer got lost.
var errLost = errors.New("lost")

// way is how long a message is on its way: mostly about a millisecond.
func way() time.Duration {
	if rand.IntN(100) == 0 { //nolint:gosec // nobody guesses
		return time.Duration(rand.Int64N(int64(200 * time.Millisecond))) //nolint:gosec // nobody guesses
	}
	return 500*time.Microsecond + time.Duration(rand.Int64N(int64(time.Millisecond))) //nolint:gosec // nobody guesses
}

// send makes a call of the store for k, and says whether the question arrived.
func (w wire) send(k *ledger, call func() error) (arrived bool, err error) {
	k.call()
	w.fleet.called()
	time.Sleep(way())
	if !w.reaches() {
		return false, errLost
	}
	err = call()
	time.Sleep(way())
	if err == nil && !w.reaches() {
		err = errLost
	}
	return true, err
}

// Take implements headgate.Store.
func (w wire) Take(ctx context.Context, r headgate.Request) (d headgate.Decision, err error) {
	k := w.fleet.ledgers[r.Key]
	w.fleet.counts.takes.Add(1)
	_, err = w.send(k, func() error {
		if d, err = w.fleet.store.Take(ctx, r); err != nil || r.Cost == 0 {
			return err
		}
		k.decide(r.Cost, d.Allowed())
		if a, ok := ctx.Value(askingKey{}).(*asking); ok {
			a.decided = true
		}
		return nil
	})
	return d, err
}

// TakeAll implements headgate.Store, for the calls of a Lease.
func (w wire) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	k := w.fleet.ledgers[rs[0].Key]
	cost, lends := rs[0].Cost, rs[1].Hold > 0
	switch {
	case cost < 0:
		w.fleet.counts.returns.Add(1)
		w.have(k, loan{})
	case lends:
		w.fleet.counts.loans.Add(1)
	default:
		w.fleet.counts.drains.Add(1)
	}
	arrived, err := w.send(k, func() error { return w.fleet.store.TakeAll(ctx, rs, ds) })
	granted := arrived && headgate.Strictest(ds).Allowed()
	switch {
	case cost < 0 && !granted:
		k.lose(-cost)
	case lends && granted && err != nil:
		k.lose(cost)
	case lends && granted:
		if _, dead := w.have(k, loan{cost, time.Now().Add(rs[1].Hold)}); dead {
			k.lose(cost)
		}
	}
	return err
}

// Reset implements headgate.Store. Nobody resets anything.
func (w wire) Reset(ctx context.Context, key string, l headgate.Limit) error {
	return w.fleet.store.Reset(ctx, key, l)
}
