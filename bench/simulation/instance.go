package simulation

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/lease"
)

// instance is a process of the fleet: the wire to the store, with a denycache and a lease
// around it.
type instance struct {
	fleet *fleet
	store headgate.Store
	cut   atomic.Int32 // by so many partitions
	dead  atomic.Bool
}

func newInstance(f *fleet) (*instance, error) {
	i := &instance{fleet: f}
	denials, err := denycache.New(wire{i}, tableKeys)
	if err != nil {
		return nil, err
	}
	i.store, err = lease.New(denials, lease.Options{
		PrefetchFraction: fraction, TTL: ttl, Keys: tableKeys,
	})
	return i, err
}

// asking is a request on its way through an instance.
type asking struct{ decided bool } // by the store

type askingKey struct{}

// ask asks for cost tokens of k.
func (i *instance) ask(ctx context.Context, k *ledger, cost int64) {
	k.ask()
	var a asking
	d, err := i.store.Take(context.WithValue(ctx, askingKey{}, &a),
		headgate.Request{Key: k.key, Limit: k.limit, Cost: cost})
	c := &i.fleet.counts
	switch {
	case err != nil:
		c.unanswered.Add(1)
	case a.decided: // and noted when it was
		c.byStore.Add(1)
	case !d.Allowed():
		c.byDenyCache.Add(1)
		k.decide(ctx, cost, false)
	case i.gone(): // it died at this moment
		c.unanswered.Add(1)
	default:
		c.byLease.Add(1)
		k.lose(-cost)
		k.decide(ctx, cost, true)
	}
}

// die ends i, with all that it has ahead.
func (i *instance) die() { i.dead.Store(true) }

func (i *instance) gone() bool { return i.dead.Load() }

// reaches says whether messages of i get through.
func (i *instance) reaches() bool {
	return !i.gone() && i.cut.Load() == 0
}

// wire is the way of an instance to the store. When it dies or is cut off, messages get lost or, as
// from a connection that stalls, arrive when no caller waits for an answer any more.
type wire struct{ *instance }

// errLost is what a caller gets whose question or answer got lost.
var errLost = errors.New("lost")

// stall is how late a request may arrive that no caller waits for: long after its limits have
// reset.
const stall = 30 * time.Second

// way is how long a message is on its way: mostly about a millisecond, and less than a batch lasts.
func way() time.Duration {
	if rand.IntN(100) == 0 {
		return upTo(200 * time.Millisecond)
	}
	return 500*time.Microsecond + upTo(time.Millisecond)
}

func upTo(d time.Duration) time.Duration { return time.Duration(rand.Int64N(int64(d))) }

// send makes a call of the store for k. If its caller is cut off meanwhile, late may be called
// instead.
func (w wire) send(k *ledger, call func() error, late func()) error {
	k.call()
	w.fleet.called()
	if w.gone() {
		return errLost
	}
	time.Sleep(way())
	if !w.reaches() {
		if rand.IntN(2) == 0 {
			time.AfterFunc(upTo(stall), late)
		}
		return errLost
	}
	err := call()
	time.Sleep(way())
	if err == nil && !w.reaches() {
		return errLost
	}
	return err
}

// Take implements headgate.Store.
func (w wire) Take(ctx context.Context, r headgate.Request) (d headgate.Decision, err error) {
	k := w.fleet.ledgers[r.Key]
	w.fleet.counts.takes.Add(1)
	decide := func() (headgate.Decision, error) {
		d, err := w.fleet.store.Take(ctx, r)
		if err == nil && r.Cost > 0 {
			k.decide(ctx, r.Cost, d.Allowed())
		}
		return d, err
	}
	err = w.send(k, func() error {
		if a, ok := ctx.Value(askingKey{}).(*asking); ok {
			a.decided = true
		}
		d, err = decide()
		return err
	}, func() { _, _ = decide() })
	return d, err
}

// TakeAll implements headgate.Store, for the prefetches of a lease. Tokens count as lost until they
// are used.
func (w wire) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	k := w.fleet.ledgers[rs[0].Key]
	w.fleet.counts.prefetches.Add(1)
	if len(rs) > 1 {
		w.fleet.counts.drains.Add(1)
	}
	call := func(ds []headgate.Decision) error {
		err := w.fleet.store.TakeAll(ctx, rs, ds)
		if err == nil && headgate.Strictest(ds).Allowed() {
			k.lose(rs[0].Cost)
		}
		return err
	}
	return w.send(k, func() error { return call(ds) }, func() {
		_ = call(make([]headgate.Decision, len(rs)))
	})
}

// Reset implements headgate.Store. Nobody resets anything.
func (w wire) Reset(ctx context.Context, key string, l headgate.Limit) error {
	return w.fleet.store.Reset(ctx, key, l)
}
