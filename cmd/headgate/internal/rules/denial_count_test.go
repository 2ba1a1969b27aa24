package rules

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

func window(t *testing.T, text string) []headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return []headgate.Limit{l}
}

// Who asks 100 times a second beyond 1/s is blocked after 20 denials, for an hour at most: no denial
// of the rule itself is counted.
func TestRepeatersAreBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour - time.Duration(time.Now().UnixNano())%time.Hour)
		e := newEngine(t, Options{},
			Rule{Name: "calls", Limits: window(t, "1/s")},
			Rule{Name: "repeaters", Limits: window(t, "20/h fixed-window"), Count: Count{Denied: true}},
		)
		q := &Request{Path: "/"}
		began, denials := time.Now(), 0
		for v := decide(t, e, q); v.Rule != "repeaters"; v = decide(t, e, q) {
			if !v.Allowed {
				denials++
			}
			time.Sleep(10 * time.Millisecond)
		}
		if denials != 20 {
			t.Errorf("blocked after %d denials", denials)
		}
		for end := began.Add(time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
			v := decide(t, e, q)
			if v.Allowed || v.Rule != "repeaters" || v.Reason != Limits || len(v.Decisions) != 1 ||
				v.RetryAfter != time.Until(end) {
				t.Fatalf("%s: %+v", time.Since(began), v)
			}
		}
		if v := decide(t, e, q); !v.Allowed || len(v.Decisions) != 1 {
			t.Errorf("after the hour: %+v", v)
		}
		if n := left(t, e, "repeaters", "all"); n != 20 {
			t.Errorf("%d remain of 20", n)
		}
	})
}

// What is charged, by rule, if another rule denies or does not.
func TestWhatCountsAsDenial(t *testing.T) {
	list := []Rule{
		{Name: "guard", Limits: per(9), Count: Count{Denied: true}},
		{Name: "strict", Limits: per(1), Count: Count{Denied: true}, Match: Match{Path: "/guards"}},
		{Name: "trial", Limits: per(9), Count: Count{Denied: true}, Mode: Shadow},
		{Name: "one", Limits: per(1), Match: Match{Path: "/limit"}},
		{Name: "other", Limits: per(9), Match: Match{Path: "/limit"}},
		{Name: "slot", Permits: 1, Match: Match{Path: "/permit"}},
		{Name: "free", Limits: per(9), Match: Match{Path: "/free"}},
		{Name: "shadow", Limits: per(1), Mode: Shadow, Match: Match{Path: "/shadow"}},
		{Name: "banned", Limits: per(9), Match: Match{Path: "/ban"}},
		{Name: "guarded", Limits: per(1), Match: Match{Path: "/guards"}},
	}
	for _, c := range []struct {
		path    string
		last    string // what denied the last of 4 requests
		charges int64  // of guard and trial
	}{
		{"/free", "", 0},
		{"/limit", "one", 3},
		{"/permit", "slot", 3},
		{"/shadow", "", 0},
		{"/ban", "banned", 0},
		{"/guards", "strict", 1}, // the denials of another guard are not counted
	} {
		var seen recorder
		e := newEngine(t, Options{
			Observe: seen.observe, Overrides: overrides{{Rule: "banned", Key: "all", Ban: true}},
		}, list...)
		var last Verdict
		for range 4 {
			last, _ = begin(t, e, &Request{Path: c.path}) // which keeps its permit
		}
		if last.Rule != c.last {
			t.Errorf("%s: %+v", c.path, last)
		}
		for _, rule := range []string{"guard", "trial"} {
			if got := 9 - left(t, e, rule, "all"); got != c.charges {
				t.Errorf("%s: %s is charged %d, want %d", c.path, rule, got, c.charges)
			}
		}
		if got := left(t, e, "other", "all"); c.path == "/limit" && got != 8 {
			t.Errorf("%d remain: a denial is charged to other rules", got)
		}
	}
}

// A blocked client charges no other rule, and its own ban or a store that fails counts nothing.
func TestBlockedChargesNothing(t *testing.T) {
	var seen recorder
	e := newEngine(t, Options{Observe: seen.observe},
		Rule{Name: "guard", Limits: per(1), Count: Count{Denied: true}},
		Rule{Name: "calls", Limits: per(1)},
	)
	q := &Request{Path: "/"}
	store := e.store
	e.store = closed{store}
	if v := decide(t, e, q); v.Allowed {
		t.Error("the fallback allows")
	}
	e.store = failing{}
	if _, err := e.Match(q).Decide(t.Context()); err == nil {
		t.Error("no error")
	}
	if e.store = store; left(t, e, "guard", "all") != 1 {
		t.Error("a request without a decision is counted")
	}
	seen.since()
	ctx, leave := context.WithCancel(t.Context())
	leave() // a client that has left is counted
	e.store = refusing{store}
	for range 3 {
		if _, err := e.Match(q).Decide(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if got := seen.since(); got != "guard allowed, calls allowed, calls denied, guard denied" {
		t.Error(got)
	}
	if v, err := decideRule(t, e, "guard", q); err != nil || v.Allowed {
		t.Errorf("%+v, %v", v, err)
	}
}

// closed is a store that fails for the limit calls, with a fallback that denies.
type closed struct{ headgate.Store }

func (s closed) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Limit.Name() != "calls" {
		return s.Store.Take(ctx, r)
	}
	return headgate.Decision{Limit: r.Limit.Share(0), RetryAfter: time.Second}, nil
}

// A guard whose charge fails denies as the other rule did, and the failure is observed.
func TestDenialThatIsNotCounted(t *testing.T) {
	var seen recorder
	e := New(headgate.NewMemory(), concurrency.NewMemory(), Options{Observe: seen.observe})
	e.Use(newSet(t, Rule{Name: "guard", Limits: per(3), Count: Count{Denied: true}},
		Rule{Name: "calls", Limits: per(1)}))
	e.store = failingGuard{e.store}
	for range 2 {
		decide(t, e, &Request{Path: "/"})
	}
	if got := seen.since(); got != "guard allowed, calls allowed, calls denied, guard error" {
		t.Error(got)
	}
}

// failingGuard is a store that fails to charge the limit of guards.
type failingGuard struct{ headgate.Store }

func (s failingGuard) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Limit.Name() == "guard" && r.Cost > 0 {
		return failing{}.Take(ctx, r)
	}
	return s.Store.Take(ctx, r)
}

// refusing is a store that charges no guard if ctx has ended.
type refusing struct{ headgate.Store }

func (s refusing) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	if r.Limit.Name() == "guard" && r.Cost > 0 && ctx.Err() != nil {
		return headgate.Decision{}, ctx.Err()
	}
	return s.Store.Take(ctx, r)
}

// A ban of a rule that counts denials, or of another one, denies without a question to the store.
func TestBansComeFirst(t *testing.T) {
	for _, banned := range []string{"guard", "calls"} {
		e := newEngine(t, Options{Overrides: overrides{{Rule: banned, Key: "all", Ban: true}}},
			Rule{Name: "guard", Limits: per(1), Count: Count{Denied: true}},
			Rule{Name: "calls", Limits: per(1)},
		)
		e.store = failing{}
		if v := decide(t, e, &Request{Path: "/"}); v.Rule != banned || v.Reason != Ban {
			t.Errorf("%s: %+v", banned, v)
		}
	}
}

// A class leaves a part of a rule that counts denials, too: what it is denied blocks the class, and
// not the others that share its key. Without a class there, it blocks all.
func TestDenialsOfAClass(t *testing.T) {
	for _, c := range []struct {
		classes Headroom
		counted int64
		others  string // what denies another class
	}{{classes, 5, ""}, {Headroom{}, 10, "guard"}} {
		e := newEngine(t, Options{},
			Rule{Name: "calls", Limits: per(100), Headroom: classes},
			Rule{Name: "guard", Limits: per(10), Headroom: c.classes, Count: Count{Denied: true}})
		last := Verdict{}
		for range 50 + 20 {
			last = decide(t, e, byClass("batch"))
		}
		if last.Rule != "guard" || 10-left(t, e, "guard", "all") != c.counted {
			t.Errorf("%s: %+v, and %d of 10 are left", &c.classes, last, left(t, e, "guard", "all"))
		}
		if v := decide(t, e, byClass("")); v.Rule != c.others || v.Allowed != (c.others == "") {
			t.Errorf("%s: another class gets %+v", &c.classes, v)
		}
	}
}
