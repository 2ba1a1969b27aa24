// Package lease prefetches tokens of hot keys, so that most requests for them are decided in the
// process.
//
//	store, err := lease.New(redisStore, lease.Options{})
//
// All processes together grant at most the limit, with few exceptions. They may grant less: see
// [Store].
package lease

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/clock"
)

// Defaults of [Options].
const (
	DefaultPrefetchFraction = 0.05
	DefaultTTL              = 100 * time.Millisecond
	DefaultKeys             = 4096
)

const maxTTL = time.Minute

// Options are the settings of a [Store]. The zero value is ready to use.
type Options struct {
	// PrefetchFraction is the part of a limit's capacity that one prefetch takes at most: above
	// 0 and at most 0.25; 0 means [DefaultPrefetchFraction].
	PrefetchFraction float64

	// TTL is how long prefetched tokens are used: from 1ms to 1m; 0 means [DefaultTTL]. It is
	// shortened for limits that refill PrefetchFraction of their capacity sooner. It should be at
	// least 20 round trips to the store.
	TTL time.Duration

	// Keys is the number of keys whose grants are counted, at 60 bytes each: at most 16,777,216; 0
	// means [DefaultKeys]. It should be several times the number of hot keys.
	Keys int
}

// Store is a [headgate.Store] that prefetches tokens of hot keys from a store that processes share.
// It grants most requests for these keys without asking the store. Make one with [New]. It is safe
// for use by many goroutines.
//
// A key is hot if its requests in this process were granted 16 times within a TTL. A prefetch takes
// half of what the process will probably use within a TTL. Callers do not wait for it: until it is
// answered, and whenever tokens run out, requests ask the store. Only the store denies.
//
// All processes together grant at most the limit, if the speeds of the clocks of the store and of
// each process differ by at most an eighth. The exceptions are grants after
//
//   - a refund or a reset;
//   - a change of the limit's numbers;
//   - a loss of writes in the store, or a jump of its clock ahead.
//
// The processes may grant less. Tokens that are not used are lost when their TTL ends or the
// process ends. A lease also leaves as many tokens of each bucket unused as flow in within a TTL.
// So with the default options, a burst on a hot key is granted 1 to 16% less than the capacity. A
// key with as many requests as its limit allows is granted up to 3% less. docs/design/lease.md has
// the measurements.
//
// Tokens are prefetched for requests of [Store.Take] with a positive cost and no MaxWait, Headroom,
// Start, At or Force, under token buckets, stepped buckets, fixed windows and calendars whose
// capacity is at least 16 / PrefetchFraction. All other requests go to the store, where prefetched
// tokens count as taken. So a request with Headroom is granted only if its cost and its headroom
// fit into what is left in the store. Sliding windows and logs are not leased: they would forget a
// charge before its tokens are used.
//
// A lease goes around a denycache, and a denycache around a fallback: see docs/fleet.md.
type Store struct {
	store    headgate.Store
	fraction float64
	ttl      time.Duration
	clock    clock.Clock
	hot      hotKeys

	mu         sync.Mutex
	closed     bool
	prefetches sync.WaitGroup // Add is called only while mu is held and closed is false
}

var _ headgate.Store = (*Store)(nil)

// New returns a lease around store.
func New(store headgate.Store, o Options) (*Store, error) {
	if err := headgate.ValidateStore(store); err != nil {
		return nil, err
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	s := &Store{
		store: store, fraction: o.PrefetchFraction, ttl: o.TTL,
		hot: newHotKeys(o.Keys, o.TTL.Microseconds()),
	}
	s.clock.Start()
	return s, nil
}

// complete sets defaults, or returns an error for the first option that is out of range.
func (o *Options) complete() error {
	o.PrefetchFraction = cmp.Or(o.PrefetchFraction, DefaultPrefetchFraction)
	o.TTL, o.Keys = cmp.Or(o.TTL, DefaultTTL), cmp.Or(o.Keys, DefaultKeys)
	invalid := func(field, value, want string) error {
		return &headgate.InvalidError{Field: field, Value: value, Want: want}
	}
	switch {
	case !(o.PrefetchFraction > 0 && o.PrefetchFraction <= 0.25): // nor NaN
		value := strconv.FormatFloat(o.PrefetchFraction, 'g', -1, 64)
		return invalid("prefetch fraction", value, "above 0 and at most 0.25")
	case o.TTL < time.Millisecond || o.TTL > maxTTL:
		return invalid("TTL", o.TTL.String(), "from 1ms to 1m, or 0 for 100ms")
	case o.Keys < 0 || o.Keys > 1<<24:
		return invalid("keys", strconv.Itoa(o.Keys), "from 1 to 16777216, or 0 for 4096")
	}
	return nil
}

// Take implements [headgate.Store].
func (s *Store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if !prefetchable(&r) {
		return s.store.Take(ctx, r)
	}
	row, hash := s.hot.row(r.Key, r.Limit)
	asked := s.clock.Micros()
	if d, ok := s.spend(row, hash, &r, asked); ok { //nolint:contextcheck // a prefetch outlives r
		return d, nil
	}
	d, err := s.store.Take(ctx, r)
	if err == nil && d.Allowed() && d.Limit == r.Limit {
		s.granted(row, hash, &r, d, asked) //nolint:contextcheck // a prefetch outlives r
	}
	return d, err
}

// prefetchable reports whether r may be decided by prefetched tokens.
func prefetchable(r *headgate.Request) bool {
	return r.Cost > 0 && !r.Force && int64(r.MaxWait)|r.Headroom == 0 && r.Start == nil &&
		r.At.IsZero() && (r.Limit.Refill() > 0 || window(r.Limit))
}

// spend decides r by prefetched tokens, if there are enough.
func (s *Store) spend(
	row *row, hash uint64, r *headgate.Request, now int64,
) (headgate.Decision, bool) {
	row.mu.Lock()
	defer row.mu.Unlock()
	c := row.find(hash)
	if c == nil || !c.held.isOf(r) || !c.held.spend(r.Cost, now) {
		return headgate.Decision{}, false
	}
	s.count(row, c, r, now)
	return c.held.decision(now), true
}

// granted counts r, which the store granted with the answer d.
func (s *Store) granted(
	row *row, hash uint64, r *headgate.Request, d headgate.Decision, asked int64,
) {
	now := s.clock.Micros()
	row.mu.Lock()
	defer row.mu.Unlock()
	c := row.counter(hash, now, s.hot.span)
	if c == nil {
		return
	}
	if c.held == nil && c.hot() {
		c.held = newHeld(r, s.plan(r.Limit))
	}
	if c.held.isOf(r) {
		c.held.said, c.held.asked = d, asked
	}
	s.count(row, c, r, now)
}

// count counts r, which was granted, and begins a prefetch for c if it is due.
func (s *Store) count(row *row, c *counter, r *headgate.Request, now int64) {
	c.count(r.Cost, now, s.hot.span)
	if !c.hot() || !c.held.isOf(r) || !c.held.due(now) {
		return
	}
	if n := c.held.plan.size(c.recent(), s.ttl); n > 0 && s.begin() {
		c.held.pending = true
		go s.prefetch(row, c.held, n, c.held.short(now))
	}
}

// begin counts a prefetch, unless s is closed.
func (s *Store) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.prefetches.Add(1)
	}
	return !s.closed
}

// prefetch takes n tokens for h, which is in row, and drains others if the bucket is too full.
func (s *Store) prefetch(row *row, h *held, n, drain int64) {
	defer s.prefetches.Done()
	ctx, cancel := context.WithTimeout(context.Background(), h.plan.ttl)
	defer cancel()
	rs := []headgate.Request{{Key: h.key, Limit: h.limit, Cost: n + drain}}
	if drain > 0 {
		rs = append(rs, headgate.Request{Key: h.key, Limit: h.plan.drain, Cost: drain})
	}
	ds := make([]headgate.Decision, len(rs))
	asked := s.clock.Micros()
	err := s.store.TakeAll(ctx, rs, ds)
	row.mu.Lock()
	defer row.mu.Unlock()
	h.pending = false
	ttl, d := h.plan.ttl.Microseconds(), ds[0]
	switch {
	case err != nil || d.Limit != h.limit: // by a share of the limit, which knows no other process
		h.rest = s.clock.Micros() + ttl
	case !headgate.Strictest(ds).Allowed():
		h.rest = s.clock.Micros() + min(max(d.RetryAfter.Microseconds(), ttl/8), ttl)
	default:
		h.said, h.asked = d, asked
		h.add(h.plan.batch(n+drain, d, asked))
	}
}

// TakeAll implements [headgate.Store]. It asks the store.
func (s *Store) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	return s.store.TakeAll(ctx, rs, ds)
}

// Reset implements [headgate.Store]. Other processes may still use the tokens that they hold.
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	row, hash := s.hot.row(key, l)
	row.drop(hash)
	defer row.drop(hash) // what was prefetched meanwhile
	return s.store.Reset(ctx, key, l)
}

// Close ends prefetching. It waits for the prefetches under way, one TTL at most. Tokens that are
// held are used until their TTL ends, and then all requests go to the store. It returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.prefetches.Wait()
	return nil
}
