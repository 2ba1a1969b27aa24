package rules

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// recorder notes what the rules decided.
type recorder struct {
	mu     sync.Mutex
	events []string
}

func (r *recorder) observe(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e.Rule.Name+" "+e.Outcome.String())
}

// since returns the events since the last call.
func (r *recorder) since() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.Join(r.events, ", ")
	r.events = nil
	return text
}

// overrides are those of a file.
type overrides []Override

func (list overrides) Find(rule, key string) (Override, bool) {
	i := slices.IndexFunc(list, func(o Override) bool { return o.Rule == rule && o.Key == key })
	if i < 0 {
		return Override{}, false
	}
	o := list[i]
	o.Limits = Named(rule, o.Limits) // as package overrides has them
	return o, true
}

func newEngine(t testing.TB, o Options, list ...Rule) *Engine {
	t.Helper()
	e := New(headgate.NewMemory(), concurrency.NewMemory(), o)
	e.Use(newSet(t, list...))
	return e
}

func per(n int64) []headgate.Limit { return []headgate.Limit{headgate.PerHour(n)} }

func decide(t testing.TB, e *Engine, q *Request) Verdict {
	t.Helper()
	v, err := e.Match(q).Decide(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func left(t testing.TB, e *Engine, rule, key string) int64 {
	t.Helper()
	terms, err := e.Terms(rule, key)
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.store.Take(t.Context(), headgate.Request{Key: key, Limit: terms.Limits[0]})
	if err != nil {
		t.Fatal(err)
	}
	return d.Remaining
}

func TestAllRulesOrNone(t *testing.T) {
	var seen recorder
	e := newEngine(t, Options{Observe: seen.observe},
		Rule{Name: "wide", Limits: per(10)},
		Rule{Name: "narrow", Match: Match{Path: "/login"}, Limits: []headgate.Limit{
			headgate.PerHour(2), headgate.PerDay(100),
		}},
		Rule{Name: "off", Limits: per(1), Mode: Off},
	)
	login := &Request{Method: "POST", Path: "/login"}
	for i := range 2 {
		v := decide(t, e, login)
		if !v.Allowed || len(v.Decisions) != 3 || v.Decisions[0].Remaining != 9-int64(i) {
			t.Fatalf("request %d: %+v", i, v)
		}
	}
	want := "wide allowed, narrow allowed, wide allowed, narrow allowed"
	if got := seen.since(); got != want {
		t.Errorf("%s; want %s", got, want)
	}
	v := decide(t, e, login)
	if v.Allowed || v.Rule != "narrow" || v.Reason != Limits || v.RetryAfter <= 0 {
		t.Errorf("%+v", v)
	}
	if got, want := seen.since(), "narrow denied"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if got := left(t, e, "wide", "all"); got != 8 {
		t.Errorf("a denied request left %d of the other rule, want 8", got)
	}
	if v := decide(t, e, &Request{Path: "/other"}); !v.Allowed || len(v.Decisions) != 1 {
		t.Errorf("%+v", v)
	}
}

func TestWithoutRules(t *testing.T) {
	e := New(headgate.NewMemory(), nil, Options{})
	if v := decide(t, e, &Request{Path: "/"}); !v.Allowed || v.Decisions != nil {
		t.Errorf("%+v", v)
	}
}

func TestShadow(t *testing.T) {
	var seen recorder
	e := newEngine(t, Options{Observe: seen.observe},
		Rule{Name: "trial", Limits: per(2), Mode: Shadow},
		Rule{Name: "real", Limits: per(4)},
		Rule{Name: "other", Limits: per(9), Mode: Shadow},
	)
	q := &Request{Path: "/"}
	for i, want := range []string{
		"real allowed, trial allowed, other allowed",
		"real allowed, trial allowed, other allowed",
		"real allowed, trial shadow_denied, other allowed",
		"real allowed, trial shadow_denied, other allowed",
		"real denied, trial shadow_denied, other allowed",
		"real denied, trial shadow_denied, other allowed",
	} {
		v := decide(t, e, q)
		if got := seen.since(); got != want {
			t.Errorf("request %d: %s; want %s", i, got, want)
		}
		if v.Allowed != (i < 4) || len(v.Decisions) != 1 {
			t.Errorf("request %d: %+v", i, v)
		}
	}
	// The requests that were denied are not carried out, and were not charged.
	terms, err := e.Terms("other", "all")
	if err != nil {
		t.Fatal(err)
	}
	d, err := e.store.Take(t.Context(), headgate.Request{Key: "all", Limit: terms.Limits[0]})
	if err != nil || d.Remaining != 5 {
		t.Errorf("%d remain, %v; want 5", d.Remaining, err)
	}
}

func TestOverrides(t *testing.T) {
	list := overrides{
		{Rule: "r", Key: "ip:192.0.2.1", Limits: per(2)},
		{Rule: "r", Key: "ip:192.0.2.2", Ban: true, Until: time.Now().Add(time.Hour)},
		{Rule: "r", Key: "ip:192.0.2.3", Ban: true},
		{Rule: "trial", Key: "ip:192.0.2.4", Ban: true},
	}
	var seen recorder
	e := newEngine(t, Options{Overrides: list, Observe: seen.observe},
		Rule{Name: "r", Key: []KeyPart{{Source: "ip"}}, Limits: per(5)},
		Rule{Name: "trial", Key: []KeyPart{{Source: "ip"}}, Limits: per(5), Mode: Shadow},
		Rule{Name: "beside", Limits: per(100)},
	)
	from := func(client string) Verdict {
		return decide(t, e, &Request{Path: "/", Client: netip.MustParseAddr(client)})
	}
	for i := range 6 {
		if v := from("192.0.2.9"); v.Allowed != (i < 5) {
			t.Errorf("request %d: %+v", i, v)
		}
		if v := from("192.0.2.1"); v.Allowed != (i < 2) || v.Decisions[0].Limit.Name() != "r" {
			t.Errorf("request %d with another limit: %+v", i, v)
		}
	}
	seen.since()
	v := from("192.0.2.2")
	if v.Allowed || v.Reason != Ban || v.Rule != "r" || v.Decisions != nil ||
		v.RetryAfter > time.Hour || v.RetryAfter < 59*time.Minute {
		t.Errorf("banned for an hour: %+v", v)
	}
	if v := from("192.0.2.3"); v.Allowed || v.RetryAfter != headgate.Never {
		t.Errorf("banned without end: %+v", v)
	}
	if got := seen.since(); got != "r denied, trial allowed, r denied, trial allowed" {
		t.Error(got)
	}
	if v := from("192.0.2.4"); !v.Allowed {
		t.Errorf("a ban in shadow: %+v", v)
	}
	if got := left(t, e, "beside", "all"); got != 100-7-1 {
		t.Errorf("%d remain beside, want 92: a denial was charged", got)
	}
}

func TestCost(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "fixed", Limits: per(100), Cost: Cost{Fixed: 7}},
		Rule{Name: "header", Limits: per(100), Cost: Cost{RequestHeader: "X-Cost"}},
		Rule{Name: "late", Limits: per(100), Cost: Cost{ResponseHeader: "X-Used"}},
	)
	remain := int64(100)
	for value, cost := range map[string]int64{
		"5": 5, "\t5": 5, "": 1, "0": 1, "-50": 1, "x": 1, "1.5": 1, "99999999999999999999": 1,
	} {
		v := decide(t, e, &Request{Path: "/", Header: http.Header{"X-Cost": {value}}})
		remain -= cost
		if got := v.Decisions[1].Remaining; got != remain {
			t.Errorf("%q: %d remain, want %d", value, got, remain)
		}
	}
	if got := left(t, e, "fixed", "all"); got != 100-8*7 {
		t.Errorf("fixed: %d remain", got)
	}
	if got := left(t, e, "late", "all"); got != 100-8 {
		t.Errorf("late: %d remain", got)
	}
}

// decideRule decides q by one rule.
func decideRule(t *testing.T, e *Engine, rule string, q *Request) (Verdict, error) {
	t.Helper()
	asked, err := e.MatchRule(rule, q)
	if err != nil {
		return Verdict{}, err
	}
	return asked.Decide(t.Context())
}

func TestDecideRule(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "login", Match: Match{Path: "/login"}, Key: []KeyPart{{Source: "ip"}}, Limits: per(5)},
		Rule{Name: "trial", Limits: per(1), Mode: Shadow},
		Rule{Name: "off", Limits: per(1), Mode: Off})
	q := &Request{Path: "/", Client: netip.MustParseAddr("192.0.2.1")}
	if v, err := decideRule(t, e, "login", q); err != nil || v.Decisions[0].Remaining != 4 {
		t.Errorf("%+v, %v", v, err)
	}
	if got := left(t, e, "login", "ip:192.0.2.1"); got != 4 {
		t.Errorf("%d remain by the terms, want 4", got)
	}
	for _, rule := range []string{"trial", "off"} {
		for range 2 {
			if v, err := decideRule(t, e, rule, q); err != nil || !v.Allowed {
				t.Errorf("%s: %+v, %v", rule, v, err)
			}
		}
	}
	var missing *NoRuleError
	for _, err := range []error{
		func() error { _, err := decideRule(t, e, "none", q); return err }(),
		func() error { _, err := e.Terms("none", "all"); return err }(),
	} {
		if !errors.As(err, &missing) || err.Error() != `rules: there is no rule "none"` {
			t.Errorf("%v", err)
		}
	}
}

// What is used is kept when the rules change.
func TestUseKeepsState(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "r", Limits: per(10)})
	for range 5 {
		decide(t, e, &Request{Path: "/"})
	}
	e.Use(newSet(t, Rule{Name: "r", Limits: per(20)}, Rule{Name: "new", Limits: per(1)}))
	if v := decide(t, e, &Request{Path: "/"}); v.Decisions[0].Remaining != 9 {
		t.Errorf("half of 20 less 1: %d", v.Decisions[0].Remaining)
	}
	if got := left(t, e, "new", "all"); got != 0 {
		t.Errorf("the new rule: %d remain", got)
	}
}

// failing is a store that is unavailable.
type failing struct{ headgate.Store }

var errDown = errors.New("down")

func (failing) Take(context.Context, headgate.Request) (headgate.Decision, error) {
	return headgate.Decision{}, errDown
}

func TestStoreFails(t *testing.T) {
	var seen recorder
	e := New(failing{}, nil, Options{Observe: seen.observe})
	e.Use(newSet(t, Rule{Name: "trial", Limits: per(1), Mode: Shadow}))
	if v := decide(t, e, &Request{Path: "/"}); !v.Allowed {
		t.Errorf("a rule in shadow denies: %+v", v)
	}
	e.Use(newSet(t, Rule{Name: "r", Limits: per(1)}))
	if v, err := e.Match(&Request{Path: "/"}).Decide(t.Context()); !errors.Is(err, errDown) || v.Allowed {
		t.Errorf("%+v, %v", v, err)
	}
	if got := seen.since(); got != "trial error, r error" {
		t.Error(got)
	}
}

func TestAllocations(t *testing.T) {
	list := []Rule{{Name: "ip", Key: []KeyPart{{Source: "ip"}}, Limits: per(1_000_000)}}
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p") {
		list = append(list, Rule{Name: name, Match: Match{Path: "/" + name}, Limits: per(1)})
	}
	e := newEngine(t, Options{Observe: func(Event) {}}, list...)
	q := &Request{Method: "GET", Host: "h:80", Path: "/x/y", Client: netip.MustParseAddr("192.0.2.1")}
	got := testing.AllocsPerRun(1000, func() {
		if v, err := e.Match(q).Decide(t.Context()); err != nil || !v.Allowed {
			t.Fatal(v, err)
		}
	})
	if got > 3 { // the context, the key, the decisions
		t.Errorf("%v allocations a decision, want at most 3", got)
	}
}

// What a decision leaves in the pool points to nothing: no key, no limits, and no rule that a reload
// has removed.
func TestPoolKeepsNothing(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "guard", Limits: per(9), Count: Count{Denied: true}},
		Rule{Name: "calls", Limits: per(9)}, Rule{Name: "trial", Limits: per(9), Mode: Shadow})
	q := e.Match(&Request{Path: "/"})
	if _, err := q.decide(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := *q
	q.free()
	for name, part := range map[string]any{
		"found": kept.found[:cap(kept.found)], "asks": kept.asks[:cap(kept.asks)],
		"shadowDecisions": kept.shadowDecisions[:cap(kept.shadowDecisions)],
		"requests":        kept.requests[:cap(kept.requests)],
	} {
		all := reflect.ValueOf(part)
		for i := range all.Len() {
			if !all.Index(i).IsZero() {
				t.Errorf("%s[%d] is %+v", name, i, all.Index(i))
			}
		}
		if all.Len() == 0 {
			t.Errorf("%s was not used", name)
		}
	}
	if q.engine != nil || q.active != nil || q.admission != nil || q.decisions != nil {
		t.Errorf("kept: %+v", q)
	}
}

// Clients are told to give up if their wait is longer than retry_within, and if they are banned.
func TestGiveUp(t *testing.T) {
	set, err := NewSet([]Rule{
		{Name: "minute", Limits: []headgate.Limit{headgate.PerMinute(1)}, Match: Match{Path: "/m"}},
		{Name: "hour", Limits: []headgate.Limit{headgate.PerHour(1)}, Match: Match{Path: "/h"}},
		{
			Name: "patient", Limits: []headgate.Limit{headgate.PerHour(1)}, Match: Match{Path: "/p"},
			RetryWithin: time.Hour,
		},
		{Name: "never", Limits: []headgate.Limit{headgate.PerHour(1)}, Match: Match{Path: "/n"},
			Cost: Cost{Fixed: 2}},
		{Name: "ban", Limits: []headgate.Limit{headgate.PerHour(9)}, Match: Match{Path: "/b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	unmatched := 0
	e := New(headgate.NewMemory(), nil, Options{
		Overrides: overrides{ // soon over, and yet no client of a ban should try again
			{Rule: "ban", Key: "all", Ban: true, Until: time.Now().Add(time.Second)},
		},
		Unmatched: func() { unmatched++ },
	})
	e.Use(set)
	for path, want := range map[string]bool{
		"/m": false, "/h": true, "/p": false, "/n": true, "/b": true, "/none": false,
	} {
		var v Verdict
		for range 2 {
			if v, err = e.Match(&Request{Path: path}).Decide(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if v.GiveUp != want {
			t.Errorf("%s: %+v", path, v)
		}
	}
	if unmatched != 2 {
		t.Errorf("%d requests matched no rule; want 2", unmatched)
	}
}

// A request is answered once, whatever number of rules apply to it. One that only peeks, or that no
// rule matches, is not.
func TestAnsweredOnce(t *testing.T) {
	var got []string
	e := newEngine(t, Options{Answered: func(o Outcome) { got = append(got, o.String()) }},
		Rule{Name: "a", Limits: per(2)}, Rule{Name: "b", Limits: per(1)}, Rule{Name: "s", Limits: per(1), Mode: Shadow},
		Rule{Name: "other", Match: Match{Hosts: []string{"x.example"}}, Limits: per(1)})
	q := &Request{Method: "GET", Path: "/"}
	decide(t, e, q)
	decide(t, e, q)
	if _, _, err := e.Answer(t.Context(), Order{}, Ask{Rule: "a"}); err != nil {
		t.Fatal(err)
	}
	e.Use(newSet(t))
	decide(t, e, q)
	if want := "allowed denied"; strings.Join(got, " ") != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
