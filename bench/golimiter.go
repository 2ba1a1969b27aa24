package main

import (
	"context"
	"net/http"

	"github.com/sethvargo/go-limiter"
	"github.com/sethvargo/go-limiter/httplimit"
	"github.com/sethvargo/go-limiter/memorystore"
)

// goLimiter is the memory store of sethvargo/go-limiter, with room reserved
// for all keys.
type goLimiter struct{ store limiter.Store }

func openGoLimiter(s Setup) (Contender, error) {
	store, err := newGoLimiter(s)
	return goLimiter{store}, err
}

func newGoLimiter(s Setup) (limiter.Store, error) {
	return memorystore.New(&memorystore.Config{
		Tokens:       uint64(s.Burst),
		Interval:     s.Period(),
		InitialAlloc: s.Keys,
	})
}

// goLimiterMiddleware is the middleware of sethvargo/go-limiter.
func goLimiterMiddleware(s Setup, next http.Handler) (http.Handler, error) {
	store, err := newGoLimiter(s)
	if err != nil {
		return nil, err
	}
	m, err := httplimit.NewMiddleware(store, httplimit.IPKeyFunc())
	if err != nil {
		return nil, err
	}
	return m.Handle(next), nil
}

func (g goLimiter) Take(key string) (bool, error) {
	_, _, _, ok, err := g.store.Take(context.Background(), key) //nolint:dogsled // the peer's own signature
	return ok, err
}

func (g goLimiter) Close() error { return g.store.Close(context.Background()) }
