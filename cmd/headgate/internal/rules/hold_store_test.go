package rules

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// overRedis returns an engine over a Redis, whose store wrap puts another one around.
func overRedis(
	t *testing.T, wrap func(headgate.Store) headgate.Store, list ...Rule,
) (*Engine, headgate.Store) {
	t.Helper()
	s, err := redisstore.Open(redistest.Start(t).URL() + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	e := New(wrap(s), nil, Options{})
	e.Use(newSet(t, list...))
	return e, s
}

// leavesAt is a store whose client leaves at a call: before it is sent, or before its answer. Its
// time stands still until then, when the turn of the client has come.
type leavesAt struct {
	headgate.Store

	call     int
	answered bool
	leave    context.CancelFunc
	at       time.Time
}

func (s *leavesAt) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	r.At = s.at
	return s.Store.Take(ctx, r)
}

func (s *leavesAt) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) (err error) {
	if s.call--; s.call == 0 {
		s.at = s.at.Add(300 * time.Millisecond)
	}
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].At = s.at
	}
	if s.call == 0 && s.answered {
		err = s.Store.TakeAll(ctx, rs, ds)
		s.leave()
		return cmp.Or(err, ctx.Err())
	}
	if s.call == 0 {
		s.leave()
	}
	return s.Store.TakeAll(ctx, rs, ds)
}

// A client that leaves when its turn has come, while the other rules are asked again, gets its turn
// refunded. The other rules are charged at most once: if their answer was lost.
func TestHeldClientLeavesAtItsTurn(t *testing.T) {
	for answered, left100 := range map[bool]int64{false: 99, true: 98} {
		ctx, leave := context.WithCancel(t.Context())
		wrap := func(s headgate.Store) headgate.Store {
			return &leavesAt{Store: s, call: 3, answered: answered, leave: leave, at: time.Now()}
		}
		e, _ := overRedis(t, wrap,
			Rule{Name: "all", Limits: per(100)},
			Rule{Name: "held", Limits: window(t, "1/300ms stepped"), MaxWait: 20 * time.Second})
		if v := decide(t, e, &Request{}); !v.Allowed {
			t.Fatalf("%+v", v)
		}
		v, err := e.Match(&Request{}).Decide(ctx)
		if !errors.Is(err, context.Canceled) || v.Allowed {
			t.Errorf("answered %v: %+v, %v", answered, v, err)
		}
		if n := left(t, e, "held", "all"); n != 1 {
			t.Errorf("answered %v: %d left of 1: the turn was not refunded", answered, n)
		}
		if n := left(t, e, "all", "all"); n != left100 {
			t.Errorf("answered %v: %d left of 100; want %d", answered, n, left100)
		}
	}
}

// Two thousand wait over Redis, in bounded memory, and leave: nothing is lost.
func TestTwoThousandWaitOverRedisAndLeave(t *testing.T) {
	const n = 2000
	e, store := overRedis(t, func(s headgate.Store) headgate.Store { return s },
		Rule{Name: "api", MaxWait: 20 * time.Second, MaxWaiting: n,
			Limits: window(t, "2000/19s stepped")})
	limits := e.active.Load().rules[0].limits
	all := headgate.Request{Key: KeyOfAll, Limit: limits[0], Cost: n}
	if d, err := store.Take(t.Context(), all); err != nil || !d.Allowed() {
		t.Fatal(d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	before := inUse()
	for range n {
		done.Go(func() {
			if v, err := e.Match(&Request{}).Decide(ctx); v.Allowed || err != nil {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	for waiting(e) < n {
		runtime.Gosched()
	}
	each := (inUse() - before) / n
	t.Logf("%d bytes for each request that waits, stacks included", each)
	if each > 30_000 {
		t.Errorf("%d bytes for each request that waits", each)
	}
	cancel()
	done.Wait()
	if waiting(e) != 0 {
		t.Errorf("%d wait in the end", waiting(e))
	}
	// The second request is never granted, so that the first only asks.
	ask := []headgate.Request{all, {Key: KeyOfAll, Limit: headgate.FixedWindow(1, time.Second), Cost: 2}}
	var ds [2]headgate.Decision
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		err := store.TakeAll(t.Context(), ask, ds[:])
		if err != nil || ds[0].RetryAfter <= 19*time.Second {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("all %d tokens are there after %s", n, ds[0].RetryAfter)
		}
	}
}

// away is a store that hangs while it is away.
type away struct {
	headgate.Store

	since atomic.Bool
}

func (s *away) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.since.Load() {
		<-ctx.Done()
		return headgate.Decision{}, ctx.Err()
	}
	return s.Store.Take(ctx, r)
}

func (s *away) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	if s.since.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	return s.Store.TakeAll(ctx, rs, ds)
}

// What requests get, and when, if the store goes away while they wait: the fallback decides about
// them when they ask next, and about requests that come meanwhile.
func TestStoreGoesAwayWhileRequestsWait(t *testing.T) {
	for _, c := range []struct {
		mode   fallback.Mode
		others bool // another rule is asked again at the turn
		want   string
	}{
		{fallback.Closed, false, "a denied by held at 1s, b denied by held at 1s, first at 0s, " +
			"new denied by held at 600ms"},
		{fallback.Closed, true, "a denied by held at 1s, b denied by held at 1s, first at 0s, " +
			"new denied by held at 600ms"},
		{fallback.Open, true, "a at 1s, b at 1s, first at 0s, new at 600ms"},
		{fallback.Local, true, "a at 4s, b denied by held at 1s, first at 0s, " +
			"new denied by held at 1s"}, // its share is 1 in 4 s
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &away{Store: headgate.NewMemory()}
			o := fallback.Options{Mode: c.mode, Timeout: 100 * time.Millisecond, Failures: 1,
				OpenTimeout: time.Hour}
			if c.mode == fallback.Local {
				o.Instances = func() int { return 4 }
			}
			around, err := fallback.New(store, o)
			if err != nil {
				t.Fatal(err)
			}
			list := []Rule{{Name: "held", MaxWait: 5 * time.Second,
				Limits: []headgate.Limit{headgate.PerSecond(1)}}}
			if c.others {
				list = append(list, Rule{Name: "all", Limits: per(100)})
			}
			e := New(around, nil, Options{})
			e.Use(newSet(t, list...))
			p := passes{start: time.Now()}
			for _, name := range []string{"first", "a", "b"} {
				p.request(t.Context(), e, name, &Request{Path: "/"})
			}
			time.Sleep(500 * time.Millisecond)
			store.since.Store(true)
			p.request(t.Context(), e, "new", &Request{Path: "/"})
			time.Sleep(time.Minute)
			synctest.Wait()
			slices.Sort(p.all)
			if got := p.text(); got != c.want {
				t.Errorf("mode %d, %v: got  %s\nwant %s", c.mode, c.others, got, c.want)
			}
		})
	}
}
