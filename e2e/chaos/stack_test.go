package chaos

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/lease"
	"github.com/headgate/headgate/observe"
	"github.com/headgate/headgate/redisstore"
)

// instances are the processes of a stack, as far as Redis can tell: each has a client of its
// own, and while it cannot ask knows nothing of the others.
const instances = 3

// stack is the store, and what is put around it. All stacks live through one fault, side by
// side, each with keys of its own.
type stack struct {
	name  string
	bare  bool          // there is nothing around the store
	mode  fallback.Mode // of the fallback, if it is not bare
	whole bool          // around that there is all else that README names, with a Fleet that counts
}

var stacks = []stack{
	{name: "bare", bare: true},
	{name: "closed", mode: fallback.Closed},
	{name: "open", mode: fallback.Open},
	{name: "local", mode: fallback.Local},
	{name: "whole", mode: fallback.Local, whole: true},
}

// Of the whole stack's leases. The default would lend nothing at the pace of this load. The limit of
// the hot key grants each instance about 50 in a TTL, three times as many as make a key hot, so that
// a busy machine also leases.
const (
	leaseFraction = 0.125
	leaseTTL      = 3 * time.Second
)

func (k stack) prefix() string { return "hg:" + k.name + ":" }

// own is how much an instance of k grants by itself of l in any interval, while the store
// cannot say. It is not bounded if k fails open.
func (k stack) own(l headgate.Limit) (share func(time.Duration) int64, bounded bool) {
	if k.bare || k.mode != fallback.Local {
		return func(time.Duration) int64 { return 0 }, k.bare || k.mode == fallback.Closed
	}
	l = l.Share(instances)
	return func(d time.Duration) int64 { return most(l, d) }, true
}

// lent is how much of l may have been taken ahead at a moment, by all instances of k.
func (k stack) lent(l headgate.Limit) int64 {
	if !k.whole || !lendable(l) {
		return 0
	}
	return instances * 2 * int64(leaseFraction*float64(l.Capacity()))
}

// lendable says whether leases take tokens of l ahead.
func lendable(l headgate.Limit) bool {
	return l.Capacity() >= 16/leaseFraction && l.Algorithm() <= headgate.AlgorithmFixedWindow
}

// settles is for how long what was taken ahead may still be used.
func (k stack) settles() time.Duration {
	if k.whole {
		return leaseTTL
	}
	return 0
}

// instance is a process of a stack.
type instance struct {
	headgate.Store

	redis   *redisstore.Store // which is inside
	closers []func()          // in the order of making

	// Of the whole stack:
	fleet  *redisstore.Fleet
	seen   observed // by callers
	passed observed // on by the leases
	asked  observed // by the deny cache
}

// observed counts what package observe reported.
type observed struct{ granted, denied, degraded, taken atomic.Int64 }

func (o *observed) decided(_ context.Context, d observe.Event) {
	if loadOf(d.Request.Key).way != allows {
		return // not every decision is a caller's
	}
	if d.Outcome == observe.Allowed {
		o.granted.Add(1)
		if d.Request.Cost == 1 && lendable(d.Request.Limit) {
			o.taken.Add(1)
		}
	}
	if d.Outcome == observe.Denied {
		o.denied.Add(1)
	}
	if d.Decision.Degraded() {
		o.degraded.Add(1)
	}
}

func (o *observed) around(t *testing.T, store headgate.Store) headgate.Store {
	t.Helper()
	return must[headgate.Store](t)(observe.New(store, observe.Observer{Decided: o.decided}))
}

// open makes the instances of k, which know how many they are.
func (k stack) open(t *testing.T, s *scene) []*instance {
	t.Helper()
	all := make([]*instance, instances)
	for i := range all {
		store, closer := s.open(k.prefix())
		all[i] = &instance{Store: store, redis: store, closers: []func(){closer}}
		switch {
		case k.whole:
			all[i].wrapWhole(t)
		case !k.bare:
			all[i].wrap(t, k.mode, func() int { return instances })
		}
	}
	for _, i := range all {
		i.learn(t)
	}
	return all
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// wrap puts a fallback around the store, with its defaults.
func (i *instance) wrap(t *testing.T, mode fallback.Mode, count func() int) {
	t.Helper()
	o := fallback.Options{Mode: mode}
	if mode == fallback.Local {
		o.Instances = count
	}
	i.Store = must[*fallback.Store](t)(fallback.New(i.Store, o))
}

// wrapWhole puts all around the store, in README's order.
func (i *instance) wrapWhole(t *testing.T) {
	t.Helper()
	i.fleet = must[*redisstore.Fleet](t)(redisstore.NewFleet(i.redis, redisstore.FleetOptions{
		Interval: 2 * time.Second, // of which a slow machine may miss two
	}))
	i.wrap(t, fallback.Local, i.fleet.Instances)
	cache := must[*denycache.Store](t)(denycache.New(i.asked.around(t, i.Store), 0))
	leased := must[*lease.Store](t)(lease.New(i.passed.around(t, cache), lease.Options{
		PrefetchFraction: leaseFraction, TTL: leaseTTL,
	}))
	i.Store = i.seen.around(t, leased)
	i.closers = append(i.closers, func() { _ = i.fleet.Close() }, func() { _ = leased.Close() })
}

// learn lets an instance hear of the others, all of which have been made.
func (i *instance) learn(t *testing.T) {
	t.Helper()
	if i.fleet == nil {
		return
	}
	until(t, "a count of all instances", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		return i.fleet.Heartbeat(ctx) == nil && i.fleet.Instances() == instances
	})
}

// shortcuts returns how many grants came from leases, and how many denials from the deny cache.
func (e side) shortcuts() (leased, cached int64) {
	for _, i := range e.instances {
		leased += i.seen.taken.Load() - i.passed.taken.Load()
		cached += i.passed.denied.Load() - i.asked.denied.Load()
	}
	return leased, cached
}

// awaitShortcuts returns when leases and the deny cache have taken part, however slow this machine is.
func (e side) awaitShortcuts(t *testing.T) {
	t.Helper()
	if !e.stack.whole {
		return
	}
	for leased, cached := e.shortcuts(); leased == 0 || cached == 0; leased, cached = e.shortcuts() {
		wait(nil, 5*time.Millisecond)
	}
}

// checkObserved fails the test if observers saw other decisions than callers.
func (n *tally) checkObserved(t *testing.T, all []*instance) {
	t.Helper()
	if !n.stack.whole {
		return
	}
	var want, degraded, granted, told int64
	for _, a := range n.accounts {
		if !a.booked() {
			want += int64(len(a.grants) + len(a.ownGrants()))
			degraded += a.away.calls
		}
	}
	for _, i := range all {
		granted += i.seen.granted.Load()
		told += i.seen.degraded.Load()
	}
	if granted != want || told != degraded {
		t.Errorf("observed were %d grants, and %d degraded decisions; callers got %d and %d", granted, told, want, degraded)
	}
}

// close closes what is outside first, and fails the test if an instance has come to believe
// in fewer than there are.
func (i *instance) close(t *testing.T) {
	t.Helper()
	if i.fleet != nil && i.fleet.Instances() < instances {
		t.Errorf("an instance knows of %d", i.fleet.Instances())
	}
	for j := range i.closers {
		i.closers[len(i.closers)-1-j]()
	}
}
