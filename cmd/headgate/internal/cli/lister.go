package cli

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/storeurl"
	"github.com/headgate/headgate/redisstore"
)

// lister lists the keys of a store.
type lister struct {
	store  *storeurl.Store
	match  string
	limits map[string]headgate.Limit // by ID; if there are any, others are left out
}

// listedKey is a key with its state under a limit.
type listedKey struct {
	redisstore.State

	// limit is known if its text is, and decision is what a request of cost 1 would get.
	limit    headgate.Limit
	known    bool
	decision headgate.Decision
}

// peeksAtOnce is how many keys are peeked at together, which is one batch of the store.
const peeksAtOnce = 64

// list calls page with the keys that match, up to peeksAtOnce at a time.
func (l *lister) list(ctx context.Context, page func([]listedKey) error) error {
	keys := make([]listedKey, 0, peeksAtOnce)
	for state, err := range l.store.Redis.Scan(ctx, l.match) {
		if err != nil {
			return storeError(ctx, l.store, err)
		}
		if k, ok := l.listed(state); ok {
			keys = append(keys, k)
		}
		if len(keys) < peeksAtOnce {
			continue
		}
		if err := l.pass(ctx, keys, page); err != nil {
			return err
		}
		keys = keys[:0]
	}
	return l.pass(ctx, keys, page)
}

// listed finds the limit of a state. It returns false if the state is left out.
func (l *lister) listed(state redisstore.State) (listedKey, bool) {
	limit, known := l.limits[state.Limit]
	if len(l.limits) > 0 && !known {
		return listedKey{}, false
	}
	if !known && state.Limit != "" {
		parsed, err := headgate.ParseLimit(state.Limit)
		limit, known = parsed, err == nil && parsed.ID() == state.Limit
	}
	known = known && limit.Algorithm() == state.Algorithm
	return listedKey{State: state, limit: limit, known: known}, true
}

// pass peeks at keys, and calls page with those that are not in their initial state.
func (l *lister) pass(ctx context.Context, keys []listedKey, page func([]listedKey) error) error {
	within, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	errs := make([]error, len(keys))
	var peeks sync.WaitGroup
	for i := range keys {
		k := &keys[i]
		if k.known {
			peeks.Go(func() {
				r := headgate.Request{Key: k.Key, Limit: k.limit}
				k.decision, errs[i] = l.store.Take(within, r)
			})
		}
	}
	peeks.Wait()
	if err := cmp.Or(errs...); err != nil {
		return storeError(ctx, l.store, err)
	}
	return page(slices.DeleteFunc(keys, func(k listedKey) bool {
		return k.known && k.decision.ResetAfter == 0
	}))
}
