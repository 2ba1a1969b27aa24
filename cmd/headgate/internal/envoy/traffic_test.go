package envoy

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/headgate/headgate"
)

// recorder counts the calls of a store, and fails them with err.
type recorder struct {
	headgate.Store
	calls int
	err   error
}

func (r *recorder) Take(ctx context.Context, q headgate.Request) (headgate.Decision, error) {
	if r.calls++; r.err != nil {
		return headgate.Decision{}, r.err
	}
	return r.Store.Take(ctx, q)
}

func (r *recorder) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if r.calls++; r.err != nil {
		return r.err
	}
	return r.Store.TakeAll(ctx, rs, ds)
}

func TestOneCallOfTheStore(t *testing.T) {
	for _, stop := range []bool{false, true} {
		store := &recorder{Store: headgate.NewMemory()}
		f := newFixtureWith(t, store, nil, Options{StopWhenOverLimit: stop}, twoLimits)
		for range 5 {
			f.ask(desc("a=1"), desc("b=1"), desc("s=1"), desc("q1=1"), desc("text=1"),
				desc("none=1"), desc("free=1"))
		}
		if store.calls != 5 {
			t.Errorf("stop %t: %d calls of the store for 5 requests", stop, store.calls)
		}
		f.ask(desc("free=1"), desc("unknown=1"))
		if store.calls != 5 {
			t.Errorf("stop %t: a request that needs no counter asks the store", stop)
		}
	}
}

func TestStoreFails(t *testing.T) {
	store := &recorder{err: errors.New("no Redis")}
	f := newFixtureWith(t, store, nil, Options{}, twoLimits)
	for _, ds := range [][]Descriptor{{desc("a=1")}, {desc("a=1"), desc("b=1")}} {
		err := f.Decide(t.Context(), &Request{Domain: "d", Descriptors: ds}, &f.resp)
		if !errors.Is(err, store.err) || len(f.resp.Statuses) != 0 {
			t.Error(err, f.resp)
		}
	}
	if n := f.stats.RedisError.Load(); n != 2 {
		t.Errorf("%d redis errors", n)
	}
}

// half denies by half of each limit, as a fallback may while the store fails.
type half struct{ headgate.Store }

func (h half) Take(_ context.Context, r headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{Limit: r.Limit.Share(2), RetryAfter: 1, ResetAfter: 1}, nil
}

func TestDegradedDecisions(t *testing.T) {
	f := newFixtureWith(t, half{}, nil, Options{LocalCacheBytes: 1}, twoLimits)
	f.want("over: over/0", desc("a=1"))
	f.want("over: over/0", desc("a=1")) // which the local cache does not remember
	f.counted("a", "total_hits=2 over_limit=2")
}

func TestReloadUnderTraffic(t *testing.T) {
	f := newFixture(t, Options{LocalCacheBytes: 1}, valued)
	configs := []*Config{configOf(t, valued), configOf(t, twoLimits), f.Config()}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		wg.Go(func() {
			var resp Response
			req := Request{Domain: "d", Descriptors: []Descriptor{desc("v=1"), desc("a=1"), desc("b=1")}}
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := f.Decide(context.Background(), &req, &resp); err != nil || len(resp.Statuses) != 3 {
					t.Error(err, resp)
					return
				}
			}
		})
	}
	for i := range 200 {
		f.Use(configs[i%len(configs)])
	}
	close(done)
	wg.Wait()
}

func FuzzParseFile(f *testing.F) {
	f.Add([]byte(twoLimits), "a", "1")
	f.Add([]byte(valued), "w", "xyz")
	f.Add([]byte("domain: d\ndescriptors: &x [{key: '*', value: 'a*', descriptors: *x}]"), "", "")
	f.Add([]byte("domain: d\ndescriptors: [{<<: [{key: a}, &y {key: b, "+
		"metadata: {c: [1, ~, {d: !!binary aGk=}]}}], value: v}]"), "b", "v")
	f.Fuzz(func(t *testing.T, text []byte, key, value string) {
		d, errs := parseFile("f", text)
		if len(errs) > 0 {
			if d != nil {
				t.Error("a domain and faults")
			}
			return
		}
		c, err := NewConfig([]*Domain{d}, false)
		if err != nil {
			t.Fatal(err)
		}
		var s Statistics
		l := New(headgate.NewMemorySize(100), nil, Options{DynamicMetadata: true}, &s)
		l.Use(c)
		var resp Response
		e := Entry{key, value}
		ds := []Descriptor{{Entries: []Entry{e}}, {Entries: []Entry{e, e}}}
		req := Request{Domain: d.Name, Descriptors: ds}
		if err := l.Decide(t.Context(), &req, &resp); err != nil || len(resp.Statuses) != 2 {
			t.Error(err, resp)
		}
	})
}
