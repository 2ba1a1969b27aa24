package rules

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

func begin(t testing.TB, e *Engine, q *Request) (Verdict, *Admission) {
	t.Helper()
	v, w, err := e.Match(q).Begin(t.Context())
	if err != nil || v.Allowed != (w != nil) {
		t.Fatal(v, w, err)
	}
	return v, w
}

func TestPermits(t *testing.T) {
	permits := concurrency.NewMemory()
	var seen recorder
	e := New(headgate.NewMemory(), permits, Options{Observe: seen.observe})
	e.Use(newSet(t,
		Rule{Name: "limited", Limits: per(6)},
		Rule{Name: "two", Permits: 2},
		Rule{Name: "trial", Permits: 1, Limits: per(9), Mode: Shadow},
	))
	q := &Request{Path: "/"}
	_, a := begin(t, e, q)
	_, b := begin(t, e, q)
	if got := seen.since(); got != "limited allowed, two allowed, trial allowed, "+
		"limited allowed, two allowed, trial shadow_denied" {
		t.Error(got)
	}
	v, _ := begin(t, e, q)
	if v.Rule != "two" || v.Reason != Permits || v.RetryAfter != time.Second || v.Decisions != nil {
		t.Errorf("%+v", v)
	}
	if got := left(t, e, "limited", "all"); got != 4 {
		t.Errorf("%d remain, want 4: a denial was charged", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the client has left
	a.End(ctx)
	b.End(ctx)
	a.End(ctx) // does nothing
	if n := permits.Keys(); n != 0 {
		t.Errorf("%d keys have permits", n)
	}
	for i := range 5 { // a denial by a limit releases its permit
		v, w := begin(t, e, q)
		if v.Allowed != (i < 4) {
			t.Errorf("request %d: %+v", i, v)
		}
		if w != nil {
			w.End(ctx)
		}
	}
	if n := permits.Keys(); n != 0 {
		t.Errorf("%d keys have permits", n)
	}
	if v := decide(t, e, q); v.Reason != Limits {
		t.Errorf("Decide looks at permits: %+v", v)
	}
}

// A panic takes no permit with it, whichever rule is observed while it happens.
func TestPanicReleasesPermits(t *testing.T) {
	permits := concurrency.NewMemory()
	for _, rule := range []string{"slots", "limited", "trial"} {
		e := New(headgate.NewMemory(), permits, Options{Observe: func(e Event) {
			if e.Rule.Name == rule {
				panic("observe " + rule)
			}
		}})
		e.Use(newSet(t,
			Rule{Name: "slots", Permits: 1},
			Rule{Name: "limited", Limits: per(1)},
			Rule{Name: "trial", Permits: 1, Mode: Shadow},
		))
		func() {
			defer func() {
				if p := recover(); p != "observe "+rule {
					t.Errorf("recovered %v", p)
				}
			}()
			_, _, _ = e.Match(&Request{Path: "/"}).Begin(t.Context())
		}()
		if n := permits.Keys(); n != 0 {
			t.Errorf("%s: %d keys have permits after the panic", rule, n)
		}
	}
}

// A permit lasts as long as its request.
func TestPermitsAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(t, Options{PermitTTL: time.Second}, Rule{Name: "one", Permits: 1})
		q := &Request{Path: "/"}
		_, w := begin(t, e, q)
		time.Sleep(time.Minute)
		if v, _ := begin(t, e, q); v.Allowed {
			t.Error("the permit expired")
		}
		w.End(t.Context())
		if v, w := begin(t, e, q); !v.Allowed {
			t.Error("the permit was not released")
		} else {
			w.End(t.Context())
		}
	})
}

func TestSettle(t *testing.T) {
	late := Cost{ResponseHeader: "X-Used"}
	var seen recorder
	e := newEngine(t, Options{Observe: seen.observe},
		Rule{Name: "late", Cost: late, Limits: []headgate.Limit{
			headgate.PerHour(100), headgate.PerDay(1000),
		}},
		Rule{Name: "trial", Limits: per(10), Cost: late, Mode: Shadow},
		Rule{Name: "each", Limits: per(1000)},
	)
	q := &Request{Path: "/"}
	remain := int64(100)
	for _, c := range []struct {
		value   string
		settled bool
		cost    int64
		failed  bool
	}{
		{"7", true, 7, false}, {"1", true, 1, false}, {"0", true, 0, false}, {"none", false, 1, false},
		{"x", true, 1, true}, {"-5", true, 1, true}, {"9007199254740992", true, 1, true},
	} {
		_, w := begin(t, e, q)
		seen.since()
		response := http.Header{"X-Used": {c.value}}
		if c.value == "none" {
			response = http.Header{"X-Used": nil} // as a trailer that did not come
		}
		if got := w.Settle(t.Context(), response); got != c.settled {
			t.Errorf("%q is settled: %t", c.value, got)
		}
		if got := seen.since(); strings.Contains(got, "late error") != c.failed {
			t.Errorf("%q: observed %q", c.value, got)
		}
		w.End(t.Context())
		remain -= c.cost
		if got := left(t, e, "late", "all"); got != remain {
			t.Errorf("%q: %d remain, want %d", c.value, got, remain)
		}
	}
	// Found in the trailer, and more than there is.
	_, w := begin(t, e, q)
	w.Settle(t.Context(), http.Header{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 2 { // once
		if !w.Settle(ctx, http.Header{"X-Used": {"300"}}) {
			t.Error("not settled")
		}
	}
	if v, _ := begin(t, e, q); v.Allowed || v.Rule != "late" || v.RetryAfter < 2*time.Hour {
		t.Errorf("after 300 of 100: %+v", v)
	}
	if got := left(t, e, "each", "all"); got != 992 {
		t.Errorf("another rule: %d remain, want 992", got)
	}
	terms, err := e.Terms("trial", "all")
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.store.Take(t.Context(), headgate.Request{Key: "all", Limit: terms.Limits[0]})
	if err != nil || d.Allowed() {
		t.Errorf("in shadow: %+v, %v", d, err)
	}
}

// failingPermits is a store of permits that is unavailable.
type failingPermits struct{ concurrency.Store }

func (failingPermits) AcquirePermit(
	context.Context, concurrency.Request,
) (concurrency.Decision, error) {
	return concurrency.Decision{}, errDown
}

func TestPermitsFail(t *testing.T) {
	var seen recorder
	e := New(headgate.NewMemory(), failingPermits{}, Options{Observe: seen.observe})
	e.Use(newSet(t, Rule{Name: "one", Permits: 1}))
	if _, w, err := e.Match(&Request{Path: "/"}).Begin(t.Context()); !errors.Is(err, errDown) || w != nil {
		t.Errorf("%v, %v", w, err)
	}
	if got := seen.since(); got != "one error" {
		t.Error(got)
	}
	e.Use(newSet(t, Rule{Name: "one", Permits: 1, Mode: Shadow}))
	_, w := begin(t, e, &Request{Path: "/"})
	w.End(t.Context())
	if got := seen.since(); got != "one error" {
		t.Error(got)
	}
}

// The event of a denial by permits or a ban has the wait that the client gets.
func TestEventsHaveTheWait(t *testing.T) {
	var waits []time.Duration
	e := New(headgate.NewMemory(), concurrency.NewMemory(), Options{
		Overrides: overrides{{Rule: "one", Key: "ip:192.0.2.1", Ban: true}},
		Observe: func(e Event) {
			if e.Outcome == Denied {
				waits = append(waits, e.Decision.RetryAfter)
			}
		},
	})
	e.Use(newSet(t, Rule{Name: "one", Key: []KeyPart{{Source: "ip"}}, Permits: 1}))
	begin(t, e, &Request{Path: "/"})
	v, _ := begin(t, e, &Request{Path: "/"})
	banned, _ := begin(t, e, &Request{Path: "/", Client: netip.MustParseAddr("192.0.2.1")})
	want := []time.Duration{v.RetryAfter, banned.RetryAfter}
	if !slices.Equal(waits, want) || v.RetryAfter == 0 || banned.RetryAfter != headgate.Never {
		t.Errorf("%v; want %v", waits, want)
	}
}
