package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
)

// breakable is a store that fails when it is told to.
type breakable struct {
	headgate.Store
	how   atomic.Int32
	asked atomic.Int64
}

const (
	works int32 = iota
	fails
	hangs   // until the context ends
	charges // and then hangs
	busy
	refuses // the input
)

var errBroken = errors.New("broken")

func (b *breakable) do(ctx context.Context, call func() error) error {
	b.asked.Add(1)
	how := b.how.Load()
	switch how {
	case works:
		return call()
	case fails:
		return errBroken
	case busy:
		return fmt.Errorf("queue: %w", redisstore.ErrBusy)
	case refuses:
		return &headgate.InvalidError{Field: "key", Value: "long", Want: "a short one"}
	case charges:
		_ = call()
	}
	<-ctx.Done()
	return ctx.Err()
}

func (b *breakable) Take(ctx context.Context, r headgate.Request) (d headgate.Decision, err error) {
	err = b.do(ctx, func() error { d, err = b.Store.Take(ctx, r); return err })
	return d, err
}

func (b *breakable) TakeAll(ctx context.Context, rs []headgate.Request, ds []headgate.Decision) error {
	return b.do(ctx, func() error { return b.Store.TakeAll(ctx, rs, ds) })
}

func (b *breakable) Reset(ctx context.Context, key string, l headgate.Limit) error {
	return b.do(ctx, func() error { return b.Store.Reset(ctx, key, l) })
}

func newBreakable() *breakable { return &breakable{Store: headgate.NewMemory(0)} }

func of(instances int) func() int { return func() int { return instances } }

func newStore(t testing.TB, s headgate.Store, o fallback.Options) *fallback.Store {
	t.Helper()
	f, err := fallback.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func take(t testing.TB, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// While the store answers, its answers are those of the fallback.
func TestSuite(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		return newStore(t, headgate.NewMemory(0), fallback.Options{Mode: fallback.Local, Instances: of(3)})
	})
}

func TestVectors(t *testing.T) {
	for _, mode := range []fallback.Mode{fallback.Closed, fallback.Open} {
		limittest.Vectors(t, newStore(t, headgate.NewMemory(0), fallback.Options{Mode: mode}))
	}
}
