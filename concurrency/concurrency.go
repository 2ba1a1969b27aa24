// Package concurrency limits how many callers work at a time for each key.
//
// A [Limiter] gives each caller a [Permit], and the caller releases it when its work is done.
// If the caller dies, the permit expires after its TTL and its place is free again:
//
//	exports, err := concurrency.New(concurrency.NewMemory(), 5, 30*time.Second)
//	...
//	permit, err := exports.Wait(ctx, "user:42")
//	if err != nil {
//		return err
//	}
//	defer permit.Release(ctx)
//
// [NewMemory] counts permits in one process. A redisstore.Store counts them for all processes
// that share a Redis.
package concurrency

import (
	"context"
	"crypto/rand"
	"reflect"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/waitline"
)

// Limiter limits how many permits of each key are in use at a time. It is safe for use by many
// goroutines. It starts no goroutines and needs no Close. Make one with [New].
//
// [Limiter.Acquire] answers at once; [Limiter.Wait] waits for a permit. Work that may take
// longer than the TTL of a permit calls [Permit.Keep].
//
// Permits belong to the key: two Limiters with the same store and key count the same permits,
// each against its own limit. So to change a limit, make another Limiter.
type Limiter struct {
	store Store
	ttl   time.Duration
	limit int64

	lines waitline.Turnstiles // callers that wait: the first of a line asks the store
}

// minTTL is the shortest TTL that Keep can renew in time. Stores accept shorter ones.
const minTTL = time.Millisecond

// New returns a Limiter that allows at most limit permits of each key. limit is from 1 to 65,535.
// The TTL of a permit is at least 1ms and at most 8760h. Choose one that is longer than any pause
// of a working process, but not much longer: a dead process keeps its permits for one TTL. New
// returns a [headgate.InvalidError] for other numbers, or if store is nil.
func New(store Store, limit int64, ttl time.Duration) (*Limiter, error) {
	v := reflect.ValueOf(store)
	switch {
	case !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil():
		return nil, invalid("store", "nil",
			"a concurrency.Store, such as concurrency.NewMemory()")
	case ttl < minTTL || ttl > maxTTL:
		return nil, invalid("ttl", ttl.String(), "at least 1ms and at most 8760h")
	case limit < 1 || limit > maxLimit:
		return nil, invalid("limit", strconv.FormatInt(limit, 10), "from 1 to 65535")
	}
	return &Limiter{
		store: store, ttl: ttl.Truncate(time.Microsecond), limit: limit,
		lines: waitline.Turnstiles{Watch: store.WatchPermits},
	}, nil
}

func invalid(field, value, want string) error {
	return &headgate.InvalidError{Field: field, Value: value, Want: want}
}

// Limit returns how many permits of each key may be in use at a time.
func (l *Limiter) Limit() int64 { return l.limit }

// TTL returns how long a permit lasts that is neither renewed nor released.
func (l *Limiter) TTL() time.Duration { return l.ttl }

// Acquire returns a permit of key if one is free, and never waits for one. If none is free, the
// permit is nil and Decision.RetryAfter is the time to retry. Callers that wait for key in this
// Limiter are served first.
//
// If ctx has ended, Acquire returns its error and acquires nothing. Any other error is the store's.
// If a permit was acquired although Acquire returned an error, it is released in the background or
// expires.
func (l *Limiter) Acquire(ctx context.Context, key string) (*Permit, Decision, error) {
	return l.AcquireWithHeadroom(ctx, key, 0)
}

// AcquireWithHeadroom is [Limiter.Acquire], but denies unless at least headroom permits of key stay
// free. So callers of several classes share the permits: critical callers leave 0, and batch jobs
// leave some. A caller gets no permit while only headroom permits, or fewer, are free. If headroom
// is the limit or more, RetryAfter is [headgate.Never]. A negative headroom is a
// [headgate.InvalidError].
func (l *Limiter) AcquireWithHeadroom(
	ctx context.Context, key string, headroom int64,
) (*Permit, Decision, error) {
	if headroom < 0 {
		return nil, Decision{}, invalid("headroom", strconv.FormatInt(headroom, 10), "0 or more")
	}
	others := l.Waiting(key) + min(headroom, l.limit)
	p, d, err := l.acquire(ctx, key, max(l.limit-others, 0), false)
	if err == nil {
		d.Limit = l.limit
		if headroom >= l.limit {
			d.RetryAfter = headgate.Never
		}
	}
	return p, d, err
}

// Peek returns what Acquire would decide if no caller waited. It acquires nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	return l.store.AcquirePermit(ctx, Request{Key: key, Limit: l.limit, TTL: l.ttl})
}

func (l *Limiter) acquire(
	ctx context.Context, key string, limit int64, notify bool,
) (*Permit, Decision, error) {
	if err := ctx.Err(); err != nil {
		return nil, Decision{}, err
	}
	r := Request{Key: key, Limit: limit, TTL: l.ttl, Notify: notify}
	// The system's generator never fails, and differs between copies of a virtual machine.
	_, _ = rand.Read(r.ID[:])
	start := time.Now()
	d, err := l.store.AcquirePermit(ctx, r)
	if err != nil || !d.Allowed() {
		return nil, d, err
	}
	r.Notify = false
	return newPermit(l.store, r, start.Add(r.TTL)), d, nil
}

// Wait returns a permit of key as soon as one is free. Callers of one Limiter are served in the
// order in which they came. If several processes wait for a key, each has a line of its own; the
// order between processes is not kept.
//
// Wait returns the error of ctx if ctx ends first. Like Acquire, it returns an error of the store
// and does not retry. The next caller in line then asks the store. So while the store is
// unavailable, all callers that wait fail, one after the other.
//
// Wait does not poll. The first caller in line asks again when the store reports that any process
// released a permit, or when enough permits have expired.
func (l *Limiter) Wait(ctx context.Context, key string) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.Waiting(key) == 0 {
		p, _, err := l.acquire(ctx, key, l.limit, false)
		if err != nil || p != nil {
			return p, err
		}
	}
	wake, leave, err := l.lines.Enter(ctx, key)
	if err != nil {
		return nil, err
	}
	defer leave()
	return l.lead(ctx, key, wake)
}

// lead asks the store for the first in line until it gets a permit.
func (l *Limiter) lead(ctx context.Context, key string, wake <-chan struct{}) (*Permit, error) {
	for {
		p, d, err := l.acquire(ctx, key, l.limit, true)
		if err != nil || p != nil {
			return p, err
		}
		select {
		case <-wake:
		case <-time.After(d.RetryAfter):
		case <-ctx.Done():
		}
	}
}

// Waiting returns how many callers wait for key in this Limiter.
func (l *Limiter) Waiting(key string) int64 { return l.lines.Callers(key) }
