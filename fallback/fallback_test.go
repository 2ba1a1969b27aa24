package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/redisstore"
)

// breakable is a store that fails in the way that is set.
type breakable struct {
	headgate.Store
	how   atomic.Int32
	calls atomic.Int64
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
	b.calls.Add(1)
	switch b.how.Load() {
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

func (b *breakable) Take(
	ctx context.Context, r headgate.Request,
) (d headgate.Decision, err error) {
	err = b.do(ctx, func() error { d, err = b.Store.Take(ctx, r); return err })
	return d, err
}

func (b *breakable) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	return b.do(ctx, func() error { return b.Store.TakeAll(ctx, rs, ds) })
}

func (b *breakable) Reset(ctx context.Context, key string, l headgate.Limit) error {
	return b.do(ctx, func() error { return b.Store.Reset(ctx, key, l) })
}

func newBreakable() *breakable { return &breakable{Store: headgate.NewMemory()} }

func of(instances int) func() int { return func() int { return instances } }

func newStore(t testing.TB, s headgate.Store, o fallback.Options) *fallback.Store {
	t.Helper()
	f, err := fallback.New(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// newLocal returns a Store in the mode Local that opens its circuit at the first failure.
func newLocal(t testing.TB, b headgate.Store, instances int) (*fallback.Store, *headgate.Memory) {
	t.Helper()
	local := headgate.NewMemory()
	return newStore(t, b, fallback.Options{
		Mode: fallback.Local, Instances: of(instances), Local: local, Failures: 1,
	}), local
}

// request asks for one token of the key "k".
func request(limit string) headgate.Request {
	l, err := headgate.ParseLimit(limit)
	if err != nil {
		panic(err)
	}
	return headgate.Request{Key: "k", Limit: l, Cost: 1}
}

func take(t testing.TB, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func takeAll(t testing.TB, s headgate.Store, rs ...headgate.Request) []headgate.Decision {
	t.Helper()
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatal(err)
	}
	return ds
}

func invalid(err error) bool {
	_, is := errors.AsType[*headgate.InvalidError](err)
	return is
}

func TestVectors(t *testing.T) {
	for _, mode := range []fallback.Mode{fallback.Closed, fallback.Open} {
		limittest.Vectors(t, newStore(t, headgate.NewMemory(), fallback.Options{Mode: mode}))
	}
	local, _ := newLocal(t, headgate.NewMemory(), 3)
	limittest.Vectors(t, local)
}

func TestNewRefusesInvalidOptions(t *testing.T) {
	memory, zero := headgate.NewMemorySize(1), new(headgate.Memory)
	const noStore = "headgate: store is nil or a zero value; " +
		"want a Store that instances share, such as redisstore's"
	for _, c := range []struct {
		store headgate.Store
		o     fallback.Options
		want  string
	}{
		{nil, fallback.Options{Mode: fallback.Closed}, noStore},
		{zero, fallback.Options{Mode: fallback.Closed}, noStore},
		{
			memory, fallback.Options{Timeout: time.Second},
			"headgate: Mode is not set; want Closed (deny), Open (grant) or Local (grant a share)",
		},
		{
			memory, fallback.Options{Mode: 4},
			"headgate: Mode is 4; want Closed, Open or Local",
		},
		{
			memory, fallback.Options{Mode: fallback.Local},
			"headgate: Instances is nil; want a function, because Mode is Local",
		},
		{
			memory, fallback.Options{Mode: fallback.Local, Instances: of(1), Local: zero},
			"headgate: Local is a zero value; want a Store, such as headgate.NewMemory(), or nil",
		},
		{
			memory, fallback.Options{Mode: fallback.Closed, Instances: of(1)},
			"headgate: Instances is a function; want nil unless Mode is Local",
		},
		{
			memory, fallback.Options{Mode: fallback.Open, Local: memory},
			"headgate: Local is a store; want nil unless Mode is Local",
		},
		{
			memory, fallback.Options{Mode: fallback.Closed, Timeout: -1},
			"headgate: Timeout is -1ns; want more than 0, or 0 for 50ms",
		},
		{
			memory, fallback.Options{Mode: fallback.Closed, Failures: -1},
			"headgate: Failures is -1; want at least 1, or 0 for 5",
		},
		{
			memory, fallback.Options{Mode: fallback.Closed, OpenTimeout: -1},
			"headgate: OpenTimeout is -1ns; want more than 0, or 0 for 1s",
		},
	} {
		if _, err := fallback.New(c.store, c.o); !invalid(err) || err.Error() != c.want {
			t.Errorf("%v; want %s", err, c.want)
		}
	}
}

func TestADegradedDecisionDoesNotAllocate(t *testing.T) {
	for _, mode := range []fallback.Mode{fallback.Closed, fallback.Open, fallback.Local} {
		o := fallback.Options{Mode: mode, OpenTimeout: time.Hour, Failures: 1}
		if mode == fallback.Local {
			o.Instances = of(3)
		}
		b := newBreakable()
		b.how.Store(fails)
		s, r := newStore(t, b, o), request("10/h")
		ctx := t.Context()
		take(t, s, r)
		if n := testing.AllocsPerRun(1000, func() { _, _ = s.Take(ctx, r) }); n > 0 {
			t.Errorf("mode %d: %v allocations", mode, n)
		}
	}
}
