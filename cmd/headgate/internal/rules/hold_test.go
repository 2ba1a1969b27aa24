package rules

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// single is a limit of one token each second, so that requests over it are a second apart.
func single() []headgate.Limit { return []headgate.Limit{headgate.PerSecond(1)} }

// byUser is the key of rules that count by a header field, which of returns.
var byUser = []KeyPart{{Source: "header", Name: "User"}}

func of(user string) http.Header { return http.Header{"User": {user}} }

// waiting returns how many requests wait in the rule api.
func waiting(e *Engine) (n int64) {
	e.Waiting(func(name string, count int64) {
		if name == "api" {
			n = count
		}
	})
	return n
}

// passes notes which requests were allowed, and when.
type passes struct {
	mu    sync.Mutex
	start time.Time
	all   []string
}

func (p *passes) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, text+" at "+time.Since(p.start).Round(time.Millisecond).String())
}

func (p *passes) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.all, ", ")
}

// request decides a request in a goroutine, and notes the verdict under a name.
func (p *passes) request(ctx context.Context, e *Engine, name string, q *Request) {
	go func() {
		v, a, err := e.Match(q).Begin(ctx)
		switch {
		case err != nil:
			p.note(name + " failed: " + err.Error())
		case v.Allowed:
			p.note(name)
			a.End(ctx)
		default:
			p.note(name + " denied by " + v.Rule)
		}
	}()
	synctest.Wait()
}

func TestHoldKeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen recorder
		e := newEngine(t, Options{Observe: seen.observe},
			Rule{Name: "api", Limits: single(), MaxWait: 3 * time.Second})
		p := passes{start: time.Now()}
		for i := range 5 {
			p.request(t.Context(), e, strconv.Itoa(i), &Request{Path: "/"})
		}
		if n := waiting(e); n != 3 {
			t.Errorf("%d wait; want 3", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "0 at 0s, 4 denied by api at 0s, 1 at 1s, 2 at 2s, 3 at 3s"
		if got := p.text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if n := waiting(e); n != 0 {
			t.Errorf("%d wait in the end", n)
		}
		if got := seen.since(); got != "api allowed, api denied, api allowed, api allowed, api allowed" {
			t.Errorf("observed: %s", got)
		}
	})
}

// A client that leaves gives its place to those behind it, and no token is lost.
func TestHeldClientsLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{Name: "api", Limits: single(), MaxWait: 10 * time.Second})
		p := passes{start: time.Now()}
		p.request(t.Context(), e, "a", &Request{Path: "/"})
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		p.request(gone, e, "gone before", &Request{Path: "/"})
		leaves, cancel := context.WithCancel(t.Context())
		p.request(leaves, e, "leaves", &Request{Path: "/"})
		p.request(t.Context(), e, "b", &Request{Path: "/"})
		p.request(t.Context(), e, "c", &Request{Path: "/"})
		time.Sleep(500 * time.Millisecond)
		cancel()
		synctest.Wait()
		p.request(t.Context(), e, "d", &Request{Path: "/"})
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "a at 0s, gone before denied by api at 0s, leaves denied by api at 500ms, " +
			"b at 1s, c at 2s, d at 3s"
		if got := p.text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// The limits of other rules are not booked ahead: who need not wait for a rule does not.
func TestHoldDelaysNoOtherRule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{},
			Rule{Name: "all", Limits: []headgate.Limit{headgate.PerSecond(100)}},
			Rule{Name: "each", Key: byUser, Limits: single(),
				MaxWait: 5 * time.Second})
		p := passes{start: time.Now()}
		for i := range 3 {
			p.request(t.Context(), e, strconv.Itoa(i), &Request{Header: of("a")})
		}
		p.request(t.Context(), e, "other", &Request{Header: of("b")})
		if n := left(t, e, "all", "all"); n != 98 {
			t.Errorf("%d of 100 are left while two wait; want 98", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := p.text(), "0 at 0s, other at 0s, 1 at 1s, 2 at 2s"; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// Two rules hold a request, one after the other, and each for at most its own time.
func TestHoldInSeveralRules(t *testing.T) {
	for _, c := range []struct {
		allWaits time.Duration
		want     string
		left     int64 // of the rule each, which has had its turn
	}{
		{5 * time.Second, "0 at 0s, other at 0s, 1 at 4s", 0},
		{0, "0 at 0s, other at 0s, 1 denied by all at 0s", 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			e := newEngine(t, Options{},
				Rule{Name: "all", Limits: []headgate.Limit{headgate.Per(2, 8*time.Second)},
					MaxWait: c.allWaits},
				Rule{Name: "each", Key: byUser, Limits: single(),
					MaxWait: 5 * time.Second})
			p := passes{start: time.Now()}
			p.request(t.Context(), e, "0", &Request{Header: of("a")})
			p.request(t.Context(), e, "other", &Request{Header: of("b")})
			p.request(t.Context(), e, "1", &Request{Header: of("a")})
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if got := p.text(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// A turn is given back if another rule denies when it comes.
func TestHoldIsRefundedWhenAnotherRuleDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{},
			Rule{Name: "few", Match: Match{Path: "/"}, Limits: per(2)},
			Rule{Name: "held", Limits: []headgate.Limit{headgate.Per(1, 2*time.Second)},
				MaxWait: 5 * time.Second})
		p := passes{start: time.Now()}
		p.request(t.Context(), e, "first", &Request{Path: "/"})
		p.request(t.Context(), e, "held", &Request{Path: "/"})
		if v := decide(t, e, &Request{Path: "/"}); v.Allowed { // waits its turn, which is 2 s later
			t.Errorf("%+v", v)
		}
		synctest.Wait()
		if got := p.text(); got != "first at 0s, held at 2s" {
			t.Error(got)
		}
		if n := left(t, e, "held", "all"); n != 1 {
			t.Errorf("%d left of 1: the denied request kept its turn", n)
		}
	})
}

func TestMaxWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{Name: "api", Limits: single(), MaxWait: 20 * time.Second,
			MaxWaiting: 3, Key: byUser})
		p := passes{start: time.Now()}
		for i, user := range []string{"a", "a", "a", "a", "b", "b", "b"} { // half of 3 are 2
			p.request(t.Context(), e, strconv.Itoa(i), &Request{Header: of(user)})
		}
		if got := p.text(); got != "0 at 0s, 3 denied by api at 0s, 4 at 0s, 6 denied by api at 0s" {
			t.Error(got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		p.request(t.Context(), e, "6", &Request{Header: of("a")})
		if n := waiting(e); n != 2 {
			t.Errorf("%d wait; want 2", n)
		}
		time.Sleep(time.Minute)
	})
}

// The default is said in the documentation. A key of constants is the only one, and takes all.
func TestDefaultMaxWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{Name: "api", MaxWait: 20 * time.Second,
			Key:    []KeyPart{{Source: "const", Name: "x"}},
			Limits: []headgate.Limit{headgate.PerSecond(10).Burst(1)}})
		p := passes{start: time.Now()}
		for range 110 {
			p.request(t.Context(), e, "one", &Request{Path: "/"})
		}
		if n := waiting(e); n != 100 {
			t.Errorf("%d wait; want 100", n)
		}
		time.Sleep(time.Minute)
	})
}

// Ten thousand wait, in bounded memory, and leave: nothing is lost.
func TestTenThousandWaitAndLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10_000
		e := newEngine(t, Options{}, Rule{Name: "api", MaxWait: 20 * time.Second, MaxWaiting: n,
			Limits: []headgate.Limit{headgate.PerSecond(1000).Burst(1)}})
		ctx, cancel := context.WithCancel(t.Context())
		var done sync.WaitGroup
		goroutines, before := runtime.NumGoroutine(), inUse()
		if v := decide(t, e, &Request{Path: "/"}); !v.Allowed {
			t.Fatalf("%+v", v)
		}
		for range n {
			done.Go(func() {
				if v, err := e.Match(&Request{Path: "/"}).Decide(ctx); v.Allowed || err != nil {
					t.Errorf("%+v, %v", v, err)
				}
			})
		}
		synctest.Wait()
		if count := waiting(e); count != n {
			t.Errorf("%d wait; want %d", count, n)
		}
		each := (inUse() - before) / n
		t.Logf("%d bytes for each request that waits, stacks included", each)
		if more := runtime.NumGoroutine() - goroutines; more > n+10 {
			t.Errorf("%d goroutines for %d requests", more, n)
		}
		if each > 20_000 {
			t.Errorf("%d bytes for each request that waits", each)
		}
		cancel()
		done.Wait()
		time.Sleep(time.Millisecond) // the one token that was used is there again
		if v := decide(t, e, &Request{Path: "/"}); !v.Allowed || waiting(e) != 0 {
			t.Errorf("after all have left: %+v, %d wait", v, waiting(e))
		}
	})
}

// inUse returns the bytes of the heap and the stacks that are in use.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// A server that stops answers those that wait, and holds none any more.
func TestEndHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{},
			Rule{Name: "api", Limits: single(), MaxWait: 20 * time.Second},
			Rule{Name: "slots", Match: Match{Path: "/slots"}, Permits: 1, MaxWait: 20 * time.Second})
		p := passes{start: time.Now()}
		_, a := begin(t, e, &Request{Path: "/slots"})
		defer a.End(t.Context())
		p.request(t.Context(), e, "slot", &Request{Path: "/slots"})
		p.request(t.Context(), e, "token", &Request{Path: "/"})
		e.EndHolds()
		synctest.Wait()
		p.request(t.Context(), e, "late", &Request{Path: "/"})
		slices.Sort(p.all)
		want := "late denied by api at 0s, slot denied by slots at 0s, token denied by api at 0s"
		if got := p.text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// A reload changes nothing for those that wait, and counts them on.
func TestReloadWhileRequestsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{Name: "api", Limits: single(), MaxWait: 5 * time.Second})
		p := passes{start: time.Now()}
		for i := range 4 {
			p.request(t.Context(), e, strconv.Itoa(i), &Request{Path: "/"})
		}
		e.Use(newSet(t, Rule{Name: "api", Limits: single(), MaxWait: time.Second, MaxWaiting: 3}))
		p.request(t.Context(), e, "new", &Request{Path: "/"})
		if n := waiting(e); n != 3 {
			t.Errorf("%d wait; want 3", n)
		}
		time.Sleep(1500 * time.Millisecond)
		e.Use(newSet(t))
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "0 at 0s, new denied by api at 0s, 1 at 1s, 2 at 2s, 3 at 3s"
		if got := p.text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

// Permits are waited for in order as well, by the same bounds.
func TestHoldForAPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permits := concurrency.NewMemory()
		e := New(headgate.NewMemory(), permits, Options{})
		e.Use(newSet(t,
			Rule{Name: "slots", Permits: 1, MaxWait: 2 * time.Second, MaxWaiting: 2},
			Rule{Name: "trial", Permits: 1, MaxWait: 2 * time.Second, Mode: Shadow}))
		p := passes{start: time.Now()}
		_, a := begin(t, e, &Request{Path: "/"})
		for _, name := range []string{"a", "b", "c"} {
			p.request(t.Context(), e, name, &Request{Path: "/"})
		}
		time.Sleep(time.Second)
		a.End(t.Context())
		synctest.Wait()
		_, a = begin(t, e, &Request{Path: "/"})
		p.request(t.Context(), e, "d", &Request{Path: "/"})
		time.Sleep(time.Minute)
		a.End(t.Context())
		want := "c denied by slots at 0s, a at 1s, b at 1s, d denied by slots at 3s"
		if got := p.text(); got != want || permits.Keys() != 0 {
			t.Errorf("got  %s\nwant %s; %d keys have permits", got, want, permits.Keys())
		}
	})
}

// If the store fails when a request has had its turn, the turn is refunded.
func TestStoreFailsWhileARequestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &failsAt{Store: headgate.NewMemory(), calls: 4} // the take after the turn has come
		var seen recorder
		e := New(store, nil, Options{Observe: seen.observe})
		e.Use(newSet(t, Rule{Name: "api", Limits: single(), MaxWait: 5 * time.Second}))
		decide(t, e, &Request{Path: "/"})
		v, err := e.Match(&Request{Path: "/"}).Decide(t.Context())
		if err == nil || v.Allowed || seen.since() != "api allowed, api error" {
			t.Errorf("%+v, %v", v, err)
		}
		if n := left(t, e, "api", "all"); n != 1 {
			t.Errorf("%d left of 1: the turn was not refunded", n)
		}
	})
}

// failsAt is a store that fails at one call.
type failsAt struct {
	headgate.Store

	calls int
}

func (s *failsAt) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if s.calls--; s.calls == 0 {
		return headgate.Decision{}, errors.New("down")
	}
	return s.Store.Take(ctx, r)
}

// A class that leaves headroom waits without a booking, so that it takes nothing from others.
func TestHoldWithHeadroom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{}, Rule{
			Name: "api", Limits: []headgate.Limit{headgate.PerSecond(1).Burst(4)},
			MaxWait: 5 * time.Second, MaxWaiting: 1, Permits: 2,
			Headroom: Headroom{Header: "Class", Classes: []Class{{Name: "batch", Percent: 50}}},
		})
		p := passes{start: time.Now()}
		batch := &Request{Header: http.Header{"Class": {"batch"}}}
		for _, name := range []string{"a", "b", "c", "d"} {
			p.request(t.Context(), e, name, batch)
		}
		p.request(t.Context(), e, "critical", &Request{}) // puts the batch off by a second
		time.Sleep(time.Minute)
		synctest.Wait()
		want := "a at 0s, b at 0s, d denied by api at 0s, critical at 0s, c at 2s"
		if got := p.text(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		_, a := begin(t, e, &Request{})
		defer a.End(t.Context())
		if v, _ := begin(t, e, batch); v.Allowed || v.Reason != Permits {
			t.Errorf("a class does not wait for permits: %+v", v)
		}
	})
}

// A request that waited pays its cost once, and the fields of its answer are true.
func TestHeldRequestPaysItsCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var costs []int64
		e := newEngine(t, Options{Observe: func(e Event) { costs = append(costs, e.Cost) }},
			Rule{Name: "api", Limits: []headgate.Limit{headgate.FixedWindow(10, time.Second)},
				Cost: Cost{Fixed: 6}, MaxWait: time.Second})
		for range 2 {
			v := decide(t, e, &Request{Path: "/"})
			if !v.Allowed || len(v.Decisions) != 1 || v.Decisions[0].Remaining != 4 ||
				!v.Decisions[0].Allowed() {
				t.Errorf("%+v", v)
			}
		}
		if !slices.Equal(costs, []int64{6, 6}) {
			t.Errorf("observed costs: %v", costs)
		}
	})
}

func TestHoldBounds(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{MaxWait: time.Second, MaxWaiting: 100_001},
			`rule "r": max_waiting: is 100001; want 1 to 100000`},
		{Rule{MaxWait: time.Second, Count: Count{Denied: true}}, `rule "r": max_wait: ` +
			`cannot be used with count: denied; want it in the rules that deny`},
		{Rule{MaxWaiting: 5}, `rule "r": max_waiting: is given without max_wait; ` +
			`want both, or max_wait alone`},
	} {
		c.rule.Name, c.rule.Limits = "r", single()
		if err := c.rule.Validate(); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
