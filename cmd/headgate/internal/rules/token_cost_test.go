package rules

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/usage"
)

func TestSettleUsage(t *testing.T) {
	var settled []Settlement
	e := newEngine(t, Options{Settled: func(s Settlement) { settled = append(settled, s) }},
		Rule{Name: "input", Limits: []headgate.Limit{headgate.PerDay(5000), headgate.PerDay(1000)},
			Cost: Cost{Tokens: &TokenCost{Estimate: 50, Input: 1}}},
		Rule{Name: "output", Limits: []headgate.Limit{headgate.PerDay(5000)},
			Cost: Cost{Tokens: &TokenCost{Estimate: 50, Output: 1, Cached: 1}}},
		Rule{Name: "trial", Mode: Shadow, Limits: []headgate.Limit{headgate.PerDay(10)},
			Cost: Cost{Tokens: &TokenCost{Estimate: 50, Input: 1}}},
		Rule{Name: "off", Mode: Off, Limits: []headgate.Limit{headgate.PerDay(10)},
			Cost: Cost{Tokens: &TokenCost{Estimate: 50, Input: 1}}},
		Rule{Name: "plain", Limits: []headgate.Limit{headgate.PerDay(5000)}},
	)
	q := e.Match(&Request{Path: "/"})
	if !q.NeedsBody() {
		t.Fatal("no rule needs the body")
	}
	said, _, _ := usage.Peek(nil, io.NopCloser(strings.NewReader(`{"max_tokens":700}`)), 8000)
	q.Expect(said)
	v, a, err := q.Begin(t.Context())
	if err != nil || !v.Allowed || !a.ReadsUsage() {
		t.Fatalf("%+v, %v", v, err)
	}
	for name, want := range map[string]int64{"input": 4000, "output": 4300, "trial": 0, "plain": 4999} {
		if got := left(t, e, name, "all"); got != want {
			t.Errorf("before: %s has %d; want %d", name, got, want)
		}
	}
	a.SettleUsage(t.Context(), usage.Answer{
		Counts: usage.Counts{Input: 20, Output: 900, Cached: 3}, Complete: true,
	})
	for name, want := range map[string]int64{"input": 4980, "output": 4097, "trial": 0, "plain": 4999} {
		if got := left(t, e, name, "all"); got != want {
			t.Errorf("after: %s has %d; want %d", name, got, want)
		}
	}
	a.SettleUsage(t.Context(), usage.Answer{Failed: true}) // which is settled already
	if got := left(t, e, "input", "all"); got != 4980 || a.ReadsUsage() {
		t.Errorf("settled twice: %d", got)
	}
	var got []string
	for _, s := range settled {
		if s.Estimated < 10 || !s.Known {
			t.Errorf("%+v", s)
		}
		got = append(got, s.Rule.Name)
	}
	if !slices.Equal(got, []string{"input", "output", "trial"}) {
		t.Errorf("settled: %q", got)
	}
	var none *Admission
	if none.ReadsUsage() {
		t.Error("a denied request reads usage")
	}
}

// An override is what an estimate has to fit.
func TestEstimateFitsOverride(t *testing.T) {
	e := newEngine(t, Options{Overrides: overrides{{Rule: "model", Key: "all", Limits: []headgate.Limit{headgate.PerDay(9)}}}},
		Rule{Name: "model", Limits: []headgate.Limit{headgate.PerDay(1000)},
			Cost: Cost{Tokens: &TokenCost{Estimate: 500, Output: 1}}})
	if v, _ := begin(t, e, &Request{Path: "/"}); !v.Allowed || left(t, e, "model", "all") != 0 {
		t.Errorf("%+v", v)
	}
}

// So is what the headroom of a class leaves.
func TestEstimateFitsBesideHeadroom(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "model", Limits: []headgate.Limit{headgate.PerDay(1000)},
		Cost:     Cost{Tokens: &TokenCost{Estimate: 5000, Output: 1}},
		Headroom: Headroom{Header: "X-Class", Classes: []Class{{Name: "batch", Percent: 40}}}})
	q := &Request{Path: "/", Header: http.Header{"X-Class": {"batch"}}}
	if v, _ := begin(t, e, q); !v.Allowed || left(t, e, "model", "all") != 400 {
		t.Errorf("%+v, %d remain", v, left(t, e, "model", "all"))
	}
}

// A request that a fallback let through was not charged: it is charged what it has used, and its
// estimate is not given back.
func TestUncheckedIsChargedInAll(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "model", Limits: []headgate.Limit{headgate.PerDay(1000)},
		Cost: Cost{Tokens: &TokenCost{Estimate: 500, Output: 1}}})
	store := e.store
	e.store = open{store}
	_, a := begin(t, e, &Request{Path: "/"})
	e.store = store
	a.SettleUsage(t.Context(), usage.Answer{Counts: usage.Counts{Output: 30}, Complete: true})
	if got := left(t, e, "model", "all"); got != 970 {
		t.Errorf("%d remain; want 970", got)
	}
}

// What is refunded after the body was not read does not grant the request. The wait is that of the
// estimate.
func TestExhausted(t *testing.T) {
	day := headgate.PerDay(1000)
	e := newEngine(t, Options{}, Rule{Name: "other", Limits: per(9)},
		Rule{Name: "model", Limits: []headgate.Limit{day}, Cost: Cost{Tokens: &TokenCost{Estimate: 500, Output: 1}}})
	take := func(cost int64) {
		if _, err := e.store.Take(t.Context(), headgate.Request{Key: "all", Limit: Named("model", []headgate.Limit{day})[0],
			Cost: cost}); err != nil {
			t.Fatal(err)
		}
	}
	for _, spent := range []int64{999, 1000} {
		take(spent)
		q := e.Match(&Request{Path: "/"})
		if got := q.Exhausted(t.Context()); got != (spent == 1000) {
			t.Fatalf("after %d: %v", spent, got)
		}
		take(-spent)
		v, a, err := q.Begin(t.Context())
		if denied := spent == 1000; v.Allowed == denied || err != nil || denied && (v.Rule != "model" ||
			v.RetryAfter.Round(time.Minute) != 12*time.Hour || left(t, e, "model", "all") != 1000) {
			t.Errorf("after %d: %+v, %v", spent, v, err)
		}
		if v.Allowed {
			a.SettleUsage(t.Context(), usage.Answer{Failed: true})
		}
	}
	if got := left(t, e, "other", "all"); got != 8 {
		t.Errorf("%d remain of a rule that did not deny; want 8", got)
	}
}

// Only the body of a request that is not banned is read, and only if a rule needs it.
func TestNeedsBody(t *testing.T) {
	tokens := Cost{Tokens: &TokenCost{Estimate: 500, Output: 1}}
	for _, c := range []struct {
		mode  Mode
		ban   string
		needs bool
	}{
		{Enforce, "", true}, {Shadow, "", true}, {Off, "", false},
		{Enforce, "model", false}, {Shadow, "model", false}, {Enforce, "other", false},
	} {
		e := newEngine(t, Options{Overrides: overrides{{Rule: c.ban, Key: "all", Ban: true}}},
			Rule{Name: "other", Limits: per(9)},
			Rule{Name: "model", Limits: per(1000), Cost: tokens, Mode: c.mode})
		if got := e.Match(&Request{Path: "/"}).NeedsBody(); got != c.needs {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A part of a key that is in the body is empty until the body is read. Then also overrides and bans
// of the key apply.
func TestKeyByModel(t *testing.T) {
	part, err := ParseKeyPart("body:model")
	if err != nil {
		t.Fatal(err)
	}
	e := newEngine(t, Options{Overrides: overrides{
		{Rule: "model", Key: "body:small", Limits: []headgate.Limit{headgate.PerDay(7)}},
		{Rule: "model", Key: "body:banned", Ban: true},
	}}, Rule{Name: "model", Key: []KeyPart{part}, Limits: per(9)})
	for _, c := range []struct {
		model, key string
		left       int64
	}{{"large", "body:large", 8}, {"small", "body:small", 6}, {"banned", "", 0}, {"", "body:", 8}} {
		q := e.Match(&Request{Path: "/"})
		if !q.NeedsBody() {
			t.Error("the body is not needed")
		}
		said, _, _ := usage.Peek(nil, io.NopCloser(strings.NewReader(`{"model":"`+c.model+`"}`)), -1)
		q.Expect(said)
		if v, _, err := q.Begin(t.Context()); err != nil || v.Allowed != (c.key != "") {
			t.Errorf("%+v: %+v, %v", c, v, err)
		}
		if c.key != "" && left(t, e, "model", c.key) != c.left {
			t.Errorf("%+v: %d remain", c, left(t, e, "model", c.key))
		}
	}
}

// A failure gives back an estimate of a cost in a field, also one of 1, but not a cost without one.
func TestFailureGivesBackAnEstimate(t *testing.T) {
	for estimate, want := range map[int64]int64{0: 999, 1: 1000, 50: 1000} {
		e := newEngine(t, Options{}, Rule{Name: "late", Limits: []headgate.Limit{headgate.PerDay(1000)},
			Cost: Cost{ResponseHeader: "X-Cost", Estimate: estimate}})
		_, a := begin(t, e, &Request{Path: "/"})
		a.SettleUsage(t.Context(), usage.Answer{Failed: true})
		if got := left(t, e, "late", "all"); got != want {
			t.Errorf("an estimate of %d: %d remain; want %d", estimate, got, want)
		}
	}
}
