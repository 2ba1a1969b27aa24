package main

import (
	"context"

	golimiter "github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/memorystore"
)

// goLimiter is the memory store of sethvargo/go-limiter, with room reserved for all keys.
type goLimiter struct{ store golimiter.Store }

func openGoLimiter(s Setup) (Contender, error) {
	store, err := memorystore.New(&memorystore.Config{
		Tokens:       uint64(s.Burst),
		Interval:     s.Period(),
		InitialAlloc: s.Keys,
	})
	return goLimiter{store}, err
}

func (g goLimiter) Take(ctx context.Context, key string) (bool, error) {
	_, _, _, ok, err := g.store.Take(ctx, key) //nolint:dogsled // its signature
	return ok, err
}

func (g goLimiter) Close() error { return g.store.Close(context.Background()) }
