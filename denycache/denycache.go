// Package denycache answers repeated denials in the process, without asking the store.
//
//	store, err := denycache.New(redisStore, 0)
//
// So a client that was denied and keeps asking costs no round trip until its wait is over.
package denycache

import (
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/clock"
)

const (
	// DefaultSize is the number of denials that a Store remembers if the size is 0.
	DefaultSize = 1 << 14

	maxSize   = 1 << 24
	maxKeyLen = 1024 // longer keys are not remembered, so that memory stays bounded
	maxShards = 64
)

// Store is a [headgate.Store] that remembers the denials of a remote store. Until a denied request
// may be retried, the Store itself denies all requests of its key and limit that cost as much or
// more. A headroom counts like a cost, so a denial with headroom does not deny a caller that needs
// less. Make one with [New]. It is safe for use by many goroutines.
//
// In a remembered denial, RetryAfter and ResetAfter count down, and never exceed the store's own
// answer; Remaining is 0. A refund, a reset or changed numbers of the limit end a denial at once if
// they come through this Store. Changes by another process take effect when the wait is over, or at
// [Store.Forget]. Until then, remembered requests are denied even while the store is unavailable.
// While two revisions of a limit alternate on a key in one process, each request removes the denial
// under the other revision.
//
// A group ([Store.TakeAll]) is denied from memory if one of its requests is. The decisions of its
// other requests are then allowed, with Remaining 0 and no waits: these requests were not the
// reason. RetryAfter of the group may be too short if another limit would deny for longer.
//
// These go to the store: peeks, refunds, requests with MaxWait, At or Force, keys of over 1,024
// bytes, costs that (with headroom) exceed the capacity, and groups that contain one of these.
//
// A lease goes around a denycache, and a denycache around a fallback. A denial by the share of a
// fallback is not remembered.
type Store struct {
	store  headgate.Store
	clock  clock.Clock
	seed   maphash.Seed
	shards []shard
}

var _ headgate.Store = (*Store)(nil)

// New returns a Store around store that remembers up to size denials; 0 means [DefaultSize]. Each
// takes about 180 bytes and its key. If there is no room, a denial that ends soon is forgotten.
func New(store headgate.Store, size int) (*Store, error) {
	if err := headgate.ValidateStore(store); err != nil {
		return nil, err
	}
	if size < 0 || size > maxSize {
		return nil, &headgate.InvalidError{
			Field: "size", Value: strconv.Itoa(size),
			Want: "at most " + strconv.Itoa(maxSize) + ", or 0 for " + strconv.Itoa(DefaultSize),
		}
	}
	size = cmp.Or(size, DefaultSize)
	s := &Store{store: store, seed: maphash.MakeSeed(), shards: make([]shard, min(size, maxShards))}
	for i := range s.shards {
		s.shards[i].size, s.shards[i].denials = size/len(s.shards), make(map[identity]denial)
	}
	s.clock.Start()
	return s, nil
}

// Take implements [headgate.Store].
func (s *Store) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	asked := s.clock.Micros()
	if d, ok := s.recall(&r, asked); ok {
		return d, nil
	}
	d, err := s.store.Take(ctx, r)
	s.learn(&r, d, err, asked)
	return d, err
}

// TakeAll implements [headgate.Store].
func (s *Store) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	asked := s.clock.Micros()
	if s.recallAll(rs, ds, asked) {
		return headgate.ValidateAll(rs, ds)
	}
	err := s.store.TakeAll(ctx, rs, ds)
	for i := range min(len(rs), len(ds)) {
		s.learn(&rs[i], ds[i], err, asked)
	}
	return err
}

// Reset implements [headgate.Store].
func (s *Store) Reset(ctx context.Context, key string, l headgate.Limit) error {
	err := s.store.Reset(ctx, key, l)
	s.Forget(key, l)
	return err
}

// Forget drops the cached denial of key under l, whatever the numbers of l. Call it when another
// process has reset the key.
func (s *Store) Forget(key string, l headgate.Limit) {
	id := identity{key, l.ID()}
	s.shard(id).forget(id, s.clock.Micros())
}

func remembers(r *headgate.Request) bool {
	return r.Cost > 0 && r.Needs() <= r.Limit.Capacity() && r.MaxWait == 0 && r.At.IsZero() &&
		!r.Force && r.Headroom >= 0 && len(r.Key) <= maxKeyLen
}

// recall returns the remembered denial of r, if there is one.
func (s *Store) recall(r *headgate.Request, now int64) (headgate.Decision, bool) {
	if !remembers(r) {
		return headgate.Decision{}, false
	}
	id := identity{r.Key, r.Limit.ID()}
	retry, reset := s.shard(id).recall(id, r.Limit, r.Needs(), now)
	return headgate.Decision{
		Limit:      r.Limit,
		RetryAfter: time.Duration(retry) * time.Microsecond,
		ResetAfter: time.Duration(reset) * time.Microsecond,
	}, retry > 0
}

// recallAll fills ds if one of rs is remembered as denied.
func (s *Store) recallAll(rs []headgate.Request, ds []headgate.Decision, now int64) bool {
	if len(rs) != len(ds) ||
		slices.ContainsFunc(rs, func(r headgate.Request) bool { return !remembers(&r) }) {
		return false
	}
	denied := false
	for i := range rs {
		d, ok := s.recall(&rs[i], now)
		ds[i], denied = d, denied || ok
	}
	return denied
}

// learn takes note of d, the store's answer to r, which was asked at that time.
func (s *Store) learn(r *headgate.Request, d headgate.Decision, err error, asked int64) {
	id := identity{r.Key, r.Limit.ID()}
	switch {
	case r.Cost < 0:
		s.Forget(r.Key, r.Limit)
	case err == nil && remembers(r) && d.RetryAfter > 0 && d.Limit == r.Limit: // not a share
		s.shard(id).remember(id, denial{
			limit: r.Limit, needs: r.Needs(), until: asked + d.RetryAfter.Microseconds(),
			reset: asked + d.ResetAfter.Microseconds(),
		}, asked)
	}
}

func (s *Store) shard(id identity) *shard {
	return &s.shards[maphash.String(s.seed, id.key)%uint64(len(s.shards))]
}
