package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/headgate/headgate"
)

// level is how many tokens are missing from a bucket, or were taken in a window, in units of
// a token a microsecond of the period: so nothing is rounded.
type level struct{ units, at int64 }

// missing brings v up to now.
func (v *level) missing(l headgate.Limit, now int64) int64 {
	period := l.Period().Microseconds()
	switch {
	case l.Algorithm() == headgate.AlgorithmFixedWindow && now/period != v.at/period:
		v.units = 0
	case l.Algorithm() == headgate.AlgorithmTokenBucket:
		v.units = max(v.units-(now-v.at)*l.Refill(), 0)
	}
	v.at = now
	return v.units
}

// add takes n tokens.
func (v *level) add(l headgate.Limit, now, n int64) {
	v.units = v.missing(l, now) + n*l.Period().Microseconds()
}

// ledger is what a key was asked for and granted. It is kept by arithmetic of its own, and
// beside an ideal: one limiter that is asked the same at the same moments.
type ledger struct {
	key   string
	limit headgate.Limit
	ideal *headgate.Memory

	mu      sync.Mutex
	used    level // by all that was granted
	asked   int64 // requests
	calls   int64 // for them
	granted int64 // tokens
	could   int64 // tokens that the ideal granted
	waste   int64 // tokens that were prefetched and not used
	over    int64 // tokens, at worst
	refused int64 // requests
	fullest int64 // the most that was missing, in units
	short   int64 // by how many tokens, at worst, a cost was refused that would have fitted
}

// decide takes note of a decision, at the moment at which it counts, and asks the ideal.
func (k *ledger) decide(ctx context.Context, cost int64, granted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.askIdeal(ctx, cost)
	k.settle(cost, granted)
}

// askIdeal asks the ideal, and reports whether it grants.
func (k *ledger) askIdeal(ctx context.Context, cost int64) bool {
	d, err := k.ideal.Take(ctx, headgate.Request{Key: k.key, Limit: k.limit, Cost: cost})
	granted := err == nil && d.Allowed()
	if granted {
		k.could += cost
	}
	return granted
}

// settle takes note of a decision.
func (k *ledger) settle(cost int64, granted bool) {
	now, period := time.Now().UnixMicro(), k.limit.Period().Microseconds()
	full := k.limit.Capacity() * period
	if granted {
		k.granted += cost
		k.used.add(k.limit, now, cost)
		k.fullest = max(k.fullest, k.used.units)
		k.over = max(k.over, (k.used.units-full+period-1)/period)
		return
	}
	k.refused++
	k.short = max(k.short, (full-k.used.missing(k.limit, now))/period-cost)
}

// lose takes note of n tokens that were prefetched, or of -n of them that were used.
func (k *ledger) lose(n int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waste += n
}

// call takes note of a call of the store.
func (k *ledger) call() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.calls++
}

// ask takes note of a request.
func (k *ledger) ask() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked++
}
