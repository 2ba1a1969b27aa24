package headgate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/internal/await"
	"github.com/headgate/headgate/internal/waitline"
)

// Limiter is a store and one or more limits, ready to use. With several limits, a request is
// granted and charged by all of them or by none. It is safe for use by many goroutines.
// Make one with [NewLimiter] or [NewLimiterFunc].
//
// Most callers want [Limiter.Allow]. To wait instead of being denied, use [Limiter.Wait]. If the
// cost is known only afterwards, use [Limiter.Reserve] or [Limiter.Charge].
type Limiter struct {
	store  Store
	memory *Memory                 // the store, if it is one: called without a Request to copy
	fixed  atomic.Pointer[[]Limit] // the same for all keys
	choose LimitsFunc              // or chosen for each, if not nil
	groups sync.Pool               // of *group
	lines  waitline.Lines[any]     // callers that wait
}

// LimitsFunc returns the limits of a key. ctx is the caller's: a middleware can put the plan of a
// customer into it.
type LimitsFunc = func(ctx context.Context, key string) ([]Limit, error)

// NewLimiter makes a limiter that applies the same limits to every key. It returns an
// [InvalidError] if there is no limit, if one is not valid, or if two of them would share their
// state because they have the same [Limit.ID].
func NewLimiter(store Store, limits ...Limit) (*Limiter, error) {
	l, err := newLimiter(store, nil)
	if err != nil {
		return nil, err
	}
	if err := l.SetLimits(limits...); err != nil {
		return nil, err
	}
	return l, nil
}

// NewLimiterFunc makes a limiter that calls limits for the limits of each key, so that plans or
// tenants can differ. Every request calls the function, from many goroutines: it should return
// slices and limits that it made beforehand. The limiter does not change the slices. If the
// function fails, the limiter returns its error unchanged and charges nothing. A key with no limits
// is always allowed, and the Limit of that decision is [Unlimited].
//
// If a key should keep what it has used when its plan changes, give the limits of all plans the
// same name: see [Limit.Named].
func NewLimiterFunc(store Store, limits LimitsFunc) (*Limiter, error) {
	if limits == nil {
		return nil, wrong("limits", "nil", "a function of the key")
	}
	return newLimiter(store, limits)
}

func newLimiter(store Store, choose LimitsFunc) (*Limiter, error) {
	if err := ValidateStore(store); err != nil {
		return nil, err
	}
	memory, _ := store.(*Memory)
	return &Limiter{store: store, memory: memory, choose: choose}, nil
}

// SetLimits replaces the limits of a limiter made by [NewLimiter]. It applies at once to all keys,
// and to callers that wait without a start time. Limits that keep their name and algorithm keep
// what has been used; see [Limit.Named]. It changes nothing and returns an [InvalidError] for
// limits that NewLimiter refuses, and for a limiter made by [NewLimiterFunc].
func (l *Limiter) SetLimits(limits ...Limit) error {
	if l.choose != nil {
		return wrong("limiter", "made by NewLimiterFunc",
			"one made by NewLimiter; let the function return other limits")
	}
	if err := validateLimits(limits); err != nil {
		return err
	}
	own := slices.Clone(limits)
	l.fixed.Store(&own)
	l.lines.Wake()
	return nil
}

func validateLimits(limits []Limit) error {
	if len(limits) == 0 {
		return wrong("limits", "empty", "at least one limit")
	}
	for i, l := range limits {
		err := l.Validate()
		if first := slices.IndexFunc(limits[:i], l.sameState); err == nil && first >= 0 {
			value := fmt.Sprintf("%q, which limit %d has, too", l.Name(), first+1)
			err = wrong("name", value, "a different name for each limit")
		}
		if e, ok := errors.AsType[*InvalidError](err); ok && len(limits) > 1 {
			e.Field = fmt.Sprintf("limit %d of %d: %s", i+1, len(limits), e.Field)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Allow takes one token of key.
func (l *Limiter) Allow(ctx context.Context, key string) (Decision, error) {
	return l.take(ctx, key, 1)
}

// AllowN takes n tokens of key at once. n must be at least 1. All n are granted or none is charged.
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (Decision, error) {
	if n < 1 {
		return Decision{}, invalid("n", n, "at least 1; Peek takes none, Refund returns tokens")
	}
	return l.take(ctx, key, n)
}

// Peek reports what Allow would decide, and charges nothing: Remaining is what is left now.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	return l.take(ctx, key, 0)
}

// Refund returns n tokens to key, but not more than key has used. n must be at least 1. It works
// even if ctx has ended, and takes at most 5 seconds.
//
// Refund soon. If a bucket has refilled since the tokens were taken, or their window has ended, a
// refund can lead to grants of up to n tokens more than the limit. Under windows and logs, the
// refunds of a [Reservation] cannot, unless the key was reset. Booked start times do not change.
func (l *Limiter) Refund(ctx context.Context, key string, n int64) (Decision, error) {
	if n < 1 {
		return Decision{}, invalid("n", n, "at least 1")
	}
	ctx, stop := await.Settling(ctx, l.memory == nil)
	defer stop()
	return l.take(ctx, key, -n)
}

// Charge charges n tokens that key has used already, whether or not they fit. n must be at least 1.
// Tokens beyond a limit delay later requests; see [Request.Force]. The decision reports whether
// the tokens fitted. Charge works even if ctx has ended, and takes at most 5 seconds.
func (l *Limiter) Charge(ctx context.Context, key string, n int64) (Decision, error) {
	ctx, stop := await.Settling(ctx, l.memory == nil)
	defer stop()
	b := l.booking(ctx, key, n)
	if b.err != nil {
		return Decision{}, b.err
	}
	for i := range b.requests {
		b.requests[i].Force = true
	}
	return l.together(ctx, b.requests, make([]Decision, len(b.requests)))
}

// AllowEach is AllowN with a decision for each limit. If n is 0, it is Peek. It appends the
// decisions to ds, in the order of the limits, or nothing if the key has no limits. If a limit
// denied, nothing was charged; each other decision reports whether its limit alone would have
// granted.
func (l *Limiter) AllowEach(
	ctx context.Context, key string, n int64, ds []Decision,
) ([]Decision, error) {
	if n < 0 {
		return ds, invalid("n", n, "at least 0; Refund returns tokens")
	}
	limits, err := l.Limits(ctx, key)
	switch {
	case err != nil || len(limits) == 0:
		return ds, err
	case len(limits) == 1:
		d, err := l.takeOne(ctx, key, limits[0], n)
		if err != nil {
			return ds, err
		}
		return append(ds, d), nil
	}
	g := l.group(key, limits, n)
	defer l.release(g)
	if err := l.store.TakeAll(ctx, g.requests, g.decisions); err != nil {
		return ds, err
	}
	return append(ds, g.decisions...), nil
}

// Reset puts key back in its initial state under each limit.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	limits, err := l.Limits(ctx, key)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		if err := l.store.Reset(ctx, key, limit); err != nil {
			return err
		}
	}
	return nil
}

// Store returns the store of l, to use it with other limits.
func (l *Limiter) Store() Store { return l.store }

// Limits returns the limits of key. The caller must not change them.
func (l *Limiter) Limits(ctx context.Context, key string) ([]Limit, error) {
	if l.choose != nil {
		return l.choose(ctx, key)
	}
	return *l.fixed.Load(), nil
}

func (l *Limiter) take(ctx context.Context, key string, cost int64) (Decision, error) {
	limits, err := l.Limits(ctx, key)
	switch {
	case err != nil:
		return Decision{}, err
	case len(limits) == 1:
		return l.takeOne(ctx, key, limits[0], cost)
	case len(limits) == 0:
		return unlimited, nil
	}
	g := l.group(key, limits, cost)
	defer l.release(g)
	return l.together(ctx, g.requests, g.decisions)
}

func (l *Limiter) takeOne(
	ctx context.Context, key string, limit Limit, cost int64,
) (Decision, error) {
	if l.memory != nil {
		return l.memory.take(key, limit, cost)
	}
	return l.store.Take(ctx, Request{Key: key, Limit: limit, Cost: cost})
}

// AllowAll decides several requests of any keys, limits and costs together, such as one for a user,
// one for a tenant and one for everyone. All are granted, or none is charged. It costs one round
// trip in a store across a network; see redisstore.Store.TakeAll for keys on several servers.
//
// It returns a decision for each request. [Strictest] returns the decision that applies to all
// requests: after its RetryAfter, all would be granted if no other request came.
func AllowAll(ctx context.Context, store Store, rs ...Request) ([]Decision, error) {
	if err := ValidateStore(store); err != nil {
		return nil, err
	}
	ds := make([]Decision, len(rs))
	if err := store.TakeAll(ctx, rs, ds); err != nil {
		return nil, err
	}
	return ds, nil
}

// together decides rs into ds, and returns the strictest decision.
func (l *Limiter) together(ctx context.Context, rs []Request, ds []Decision) (Decision, error) {
	switch len(rs) {
	case 0:
		return unlimited, nil
	case 1:
		return l.store.Take(ctx, rs[0])
	}
	if err := l.store.TakeAll(ctx, rs, ds); err != nil {
		return Decision{}, err
	}
	return Strictest(ds), nil
}

// group is room for the requests and decisions of one call.
type group struct {
	requests  []Request
	decisions []Decision
}

func (l *Limiter) group(key string, limits []Limit, cost int64) *group {
	g, _ := l.groups.Get().(*group)
	if g == nil {
		g = new(group)
	}
	g.requests, g.decisions = g.requests[:0], g.decisions[:0]
	for _, limit := range limits {
		g.requests = append(g.requests, Request{Key: key, Limit: limit, Cost: cost})
		g.decisions = append(g.decisions, Decision{})
	}
	return g
}

func (l *Limiter) release(g *group) {
	clear(g.requests) // hold no key while idle
	l.groups.Put(g)
}
