package envoy

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

const twoLimits = `
domain: d
descriptors:
  - {key: a, rate_limit: {unit: minute, requests_per_unit: 4}}
  - {key: b, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: s, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: q1, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: q2, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: none, rate_limit: {unit: second, requests_per_unit: 0}}
  - {key: sec, rate_limit: {unit: second, requests_per_unit: 2}}
  - {key: text, limit: 2/h}
`

func TestEachDescriptorIsChargedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{}, twoLimits)
		f.want("ok: ok/3,ok/1", desc("a=1"), desc("b=1"))
		f.want("ok: ok/2,ok/0", desc("a=1"), desc("b=1"))
		f.want("over: ok/1,over/0", desc("a=1"), desc("b=1"))
		f.want("over: ok/0,over/0", desc("a=1"), desc("b=1"))
		f.want("over: over/0,over/0", desc("a=1"), desc("b=1"))
		f.counted("a", "total_hits=5 over_limit=1 near_limit=1 within_limit=4")
		f.counted("b", "total_hits=5 over_limit=3 near_limit=1 within_limit=2")
		f.want("ok: ok/3", desc("a=2"))
		time.Sleep(time.Minute)
		f.want("ok: ok/3", desc("a=1"))
	})
}

func TestAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cache := range []int{0, 1000} {
			o := Options{StopWhenOverLimit: true, LocalCacheBytes: cache}
			f := newFixture(t, o, twoLimits)
			for _, want := range []string{
				"ok: ok/3,ok/1", "ok: ok/2,ok/0", "over: ok/2,over/0", "over: ok/2,over/0",
			} {
				if got := codes(f.ask(desc("a=1"), desc("b=1"))); got != want {
					t.Errorf("local cache of %d: got %s; want %s", cache, got, want)
				}
			}
			// Shadow and quota descriptors hold nothing back.
			f.want("ok: ok/1,ok/0,ok/0", desc("a=1"), desc("s=1"), desc("q1=1"))
			f.want("over: ok/0,ok/0,over/0", desc("a=1"), desc("s=1"), desc("q1=1"))
		}
	})
}

func TestTwoStoresAllOrNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		main, second := headgate.NewMemory(), headgate.NewMemory()
		f := newFixtureWith(t, main, second, Options{StopWhenOverLimit: true}, twoLimits)
		f.want("ok: ok/3,ok/1", desc("a=1"), desc("sec=1"))
		f.want("ok: ok/2,ok/0", desc("a=1"), desc("sec=1"))
		f.want("over: ok/2,over/0", desc("a=1"), desc("sec=1"))
		f.want("ok: ok/1", desc("a=1"))
		f.want("ok: ok/1,ok/1", desc("b=1"), desc("sec=2"))
		f.want("ok: ok/0", desc("b=1"))
		f.want("over: over/0,ok/1", desc("b=1"), desc("sec=2"))
	})
}

func TestHits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{}, twoLimits)
		f.want("ok: ok/4", hits(0, desc("a=1"))) // a look
		f.want("ok: ok/1", hits(3, desc("a=1")))
		f.want("ok: ok/0", hits(1, desc("a=1")))
		f.want("ok: ok/0", hits(0, desc("a=1"))) // used up exactly
		f.want("over: over/0", hits(1, desc("a=1")))
		f.want("over: over/0", hits(0, desc("a=1")))
		refund := hits(3, desc("a=1"))
		refund.Negative = true
		f.want("ok: ok/2", refund)
		f.want("ok: ok/0", hits(2, desc("a=1")))
		f.counted("a", "total_hits=7 over_limit=1 near_limit=2 within_limit=6")
		// Without hits of its own, a descriptor has none to refund.
		alone := desc("a=2")
		alone.Negative = true
		f.want("ok: ok/3", alone)
		f.want("ok: ok/2", alone)
		// One counter twice in a request is charged twice.
		f.want("over: ok/0,over/0", hits(2, desc("b=1")), desc("b=1"))
	})
}

// TestTokenQuota bills tokens as Envoy does: a peek before a request, and a charge after it.
func TestTokenQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, o := range []Options{{}, {LocalCacheBytes: 1000}, {StopWhenOverLimit: true}} {
			f := newFixture(t, o, `
domain: d
descriptors: [{key: tokens, rate_limit: {unit: minute, requests_per_unit: 2}}]
`)
			for request, want := range []string{"ok: ok/2", "ok: ok/1", "ok: ok/0"} {
				if got := codes(f.ask(hits(0, desc("tokens=1")))); got != want {
					t.Errorf("%+v: before request %d: %s; want %s", o, request+1, got, want)
				}
				f.ask(hits(1, desc("tokens=1")))
			}
			want := "over: over/0"
			if o.StopWhenOverLimit { // the last charge was not made
				want = "ok: ok/0"
			}
			f.want(want, hits(0, desc("tokens=1")))
		}
	})
}

// TestLimitOfZero: its hits count, for when the limit is raised.
func TestLimitOfZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, cache := range []int{0, 1000} {
			f := newFixture(t, Options{LocalCacheBytes: cache}, twoLimits)
			f.want("ok: ok/0", hits(0, desc("none=1")))
			f.want("over: over/0", hits(5, desc("none=1")))
			f.want("over: over/0", hits(0, desc("none=1")))
			f.counted("none", "total_hits=5 over_limit=5")
			raised := desc("none=1")
			raised.Override = &Override{RequestsPerUnit: 6, Unit: Second}
			f.want("ok: ok/0", raised)
			f.want("over: over/0", raised)
		}
	})
}

// TestHeldByTheLocalCache: what another descriptor holds back is looked at, not denied.
func TestHeldByTheLocalCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{LocalCacheBytes: 1000, StopWhenOverLimit: true}, twoLimits)
		f.want("ok: ok/0", hits(2, desc("b=1")))
		f.want("over: over/0", desc("b=1"))
		f.want("ok: ok/0", hits(4, desc("a=1")))
		f.want("over: ok/0,over/0", desc("a=1"), desc("b=1"))
		f.counted("a", "total_hits=5 near_limit=1 within_limit=5")
	})
}

func TestManyHits(t *testing.T) {
	f := newFixture(t, Options{}, twoLimits)
	req := Request{Domain: "d", Descriptors: []Descriptor{desc("b=1")}, HitsAddend: math.MaxUint32}
	if text := f.fails(req); text != "" || codes(&f.resp) != "over: over/0" {
		t.Error(text, codes(&f.resp))
	}
	wide := hits(0, desc("b=3"))
	wide.Override = &Override{RequestsPerUnit: math.MaxUint32, Unit: Year, Multiplier: 285}
	f.want("ok: ok/4294967295", wide)
	req.Descriptors[0] = hits(1<<53-1, desc("b=2"))
	if text := f.fails(req); text != "" || codes(&f.resp) != "over: over/0" {
		t.Error(text, codes(&f.resp))
	}
}

func TestModes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{}, twoLimits)
		f.want("ok: ok/0", desc("s=1"))
		f.want("ok: ok/0", desc("s=1"))
		f.counted("s", "total_hits=2 over_limit=1 near_limit=1 within_limit=1 shadow_mode=1")
		// A request is over its quotas if all of them are.
		f.want("ok: ok/0,ok/1", desc("q1=1"), desc("q2=1"))
		f.want("ok: over/0,ok/0", desc("q1=1"), desc("q2=1"))
		f.want("over: over/0,over/0", desc("q1=1"), desc("q2=1"))
		f.want("ok: ok,ok", desc("free=1"), desc("unknown=1"))
		if s := f.resp.Statuses; s[0].Remaining != math.MaxUint32 || s[1].Remaining != 0 {
			t.Error(s)
		}
		f.want("over: over/0", desc("none=1"))

		f = newFixture(t, Options{ShadowMode: true}, twoLimits)
		f.want("ok: over/0", desc("none=1"))
		if n := f.stats.GlobalShadowMode.Load(); n != 1 {
			t.Error(n)
		}
		f = newFixture(t, Options{QuotaMode: true}, twoLimits)
		f.want("ok: over/0,ok/3", desc("none=1"), desc("a=1"))
		f.want("over: over/0", desc("none=1"))
	})
}

func TestTextLimitsCountWhatTheyGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{}, twoLimits)
		f.want("ok: ok/1,ok/1", desc("text=1"), desc("text=2"))
		f.want("ok: ok/0", desc("text=1"))
		f.want("over: over/0", desc("text=1"))
		f.want("over: over/0", desc("text=1"))
		time.Sleep(30 * time.Minute)
		f.want("ok: ok/0", desc("text=1"))
		s := f.resp.Statuses[0]
		if s.Limit != (Limit{RequestsPerUnit: 2, Unit: Hour, Name: "2/h"}) || s.Reset != time.Hour {
			t.Errorf("%+v", s)
		}
		// What is known only afterwards is charged if anything is left, and not else.
		f.want("over: over/0", hits(4, desc("text=1")))
		time.Sleep(30 * time.Minute)
		f.want("ok: ok/0", hits(4, desc("text=1")))
		time.Sleep(90 * time.Minute)
		f.want("over: over/0", desc("text=1"))
		time.Sleep(30 * time.Minute)
		f.want("ok: ok/0", desc("text=1"))
	})
}

// A denial says when none of its descriptors denies any more.
func TestRetryAfterOfDenials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{RetryAfter: true}, `
domain: d
descriptors:
  - {key: bucket, limit: 1/20m}
  - {key: window, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
`)
		time.Sleep(15 * time.Second)
		both := []Descriptor{desc("window=1"), desc("bucket=1"), desc("shadow=1")}
		if r := f.ask(both...); len(r.Headers) > 0 {
			t.Errorf("allowed: %v", r.Headers)
		}
		for i, want := range []string{"1200", "45"} {
			if r := f.ask(both[:len(both)-2*i]...); !slices.Equal(r.Headers, []Header{{"Retry-After", want}}) {
				t.Errorf("got %v; want %s", r.Headers, want)
			}
		}
	})
}

// Quotas deny only together, so the first of them that has tokens again ends the denial. If a
// descriptor denies whatever the wait, there is none.
func TestRetryAfterOfQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{RetryAfter: true}, `
domain: d
descriptors:
  - {key: day, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: hour, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: blocked, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 0}}
  - {key: minute, rate_limit: {unit: minute, requests_per_unit: 1}}
  - {key: bucket, limit: 2/20m}
  - {key: owes, limit: 2/20m, charge_always: true}
`)
		day, hour, minute := desc("day=1"), desc("hour=1"), desc("minute=1")
		f.want("ok: ok/0,ok/0,ok/0", day, hour, minute)
		f.want("ok: ok/0", hits(3, desc("bucket=1"))) // which owes one
		for _, c := range []struct {
			want string
			of   []Descriptor
		}{
			{"60", []Descriptor{day, desc("hour=2"), minute}},
			{"3600", []Descriptor{day, desc("hour=1"), minute}},
			{"3600", []Descriptor{day, desc("blocked=1"), hour}},
			{"86400", []Descriptor{day, minute, desc("blocked=1")}},
			{"", []Descriptor{minute, desc("blocked=1")}},
			{"", []Descriptor{minute, hits(2, desc("minute=2"))}},
			{"", []Descriptor{hits(3, desc("owes=1"))}},
			{"1800", []Descriptor{hits(3, desc("bucket=1"))}},
		} {
			r := f.ask(c.of...)
			got := ""
			if len(r.Headers) > 0 {
				got = r.Headers[0].Value
			}
			if r.Code != OverLimit || got != c.want {
				t.Errorf("%v: %v, Retry-After %q; want %q", c.of, r.Code, got, c.want)
			}
		}
	})
}

func TestAnswersShowTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{LimitHeader: "L", RemainingHeader: "R", ResetHeader: "X"}, `
domain: d
descriptors:
  - {key: m, rate_limit: {name: five, unit: minute, unit_multiplier: 5, requests_per_unit: 3}}
  - {key: w, rate_limit: {unit: week, requests_per_unit: 2}}
  - {key: t, limit: 100/15m burst 20}
  - {key: n, rate_limit: {limit: 10/500ms, name: fast}}
`)
		time.Sleep(90*time.Second + 300*time.Millisecond)
		r := f.ask(desc("m=1"), desc("w=1"), desc("t=1"), desc("n=1"))
		for i, want := range []Status{
			{OK, true, Limit{3, Minute, 5, "five"}, 2, 210 * time.Second},
			{OK, true, Limit{2, Week, 0, ""}, 1, 431910 * time.Second},
			{OK, true, Limit{100, Minute, 15, "100/15m burst 20"}, 19, 9 * time.Second},
			{OK, true, Limit{20, Second, 0, "fast"}, 9, time.Second},
		} {
			if r.Statuses[i] != want {
				t.Errorf("got %+v; want %+v", r.Statuses[i], want)
			}
		}
		if !slices.Equal(r.Headers, []Header{{"L", "2"}, {"R", "1"}, {"X", "431910"}}) {
			t.Error(r.Headers)
		}
	})
}

func TestOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{}, twoLimits)
		d := desc("a=1, x=2")
		d.Override = &Override{RequestsPerUnit: 2, Unit: Second, Multiplier: 10}
		f.want("ok: ok/1", d)
		if s := f.resp.Statuses[0]; s.Limit != (Limit{2, Second, 10, ""}) || s.Reset != 10*time.Second {
			t.Errorf("%+v", s)
		}
		d.Override.RequestsPerUnit = 5 // and what was used is kept
		f.want("ok: ok/3", d)
		f.counted("a_1.x_2", "total_hits=2 within_limit=2")
		for _, u := range []Unit{UnitUnknown, 8, -1} {
			d.Override = &Override{RequestsPerUnit: 1, Unit: u}
			text := f.fails(Request{Domain: "d", Descriptors: []Descriptor{d}})
			if !strings.HasPrefix(text, "rate limit override: rate limit unit is ") {
				t.Error(text)
			}
		}
		d.Override = &Override{RequestsPerUnit: 1, Unit: Year, Multiplier: math.MaxUint32}
		text := f.fails(Request{Domain: "d", Descriptors: []Descriptor{d}})
		if text != "rate limit override: unit_multiplier is 4294967295; want at most 285 with unit YEAR" {
			t.Error(text)
		}
	})
}

func TestReplaces(t *testing.T) {
	f := newFixture(t, Options{}, `
domain: d
descriptors:
  - {key: a, rate_limit: {name: base, unit: hour, requests_per_unit: 1}}
  - {key: b, rate_limit: {replaces: [{name: base}], unit: hour, requests_per_unit: 5}}
  - {key: c, rate_limit: {replaces: [{name: base}], unlimited: true}}
`)
	f.want("ok: ok,ok/4", desc("a=1"), desc("b=1"))
	f.want("ok: ok,ok", desc("a=1"), desc("c=1"))
	f.counted("a", "")
	f.want("ok: ok/0", desc("a=1"))
}

func TestRequestErrors(t *testing.T) {
	f := newFixture(t, Options{}, twoLimits)
	a := []Descriptor{desc("a=1")}
	for _, c := range []struct {
		r    Request
		want string
	}{
		{Request{Descriptors: a}, "rate limit domain must not be empty"},
		{Request{Domain: "d"}, "rate limit descriptor list must not be empty"},
		{
			Request{Domain: "d", Descriptors: make([]Descriptor, 1001)},
			"rate limit descriptor list has 1001 descriptors; want at most 1000",
		},
		{Request{Domain: "other", Descriptors: a}, ""},
		{Request{Domain: "d", Descriptors: make([]Descriptor, 1000)}, ""},
	} {
		if got := f.fails(c.r); got != c.want {
			t.Errorf("got %q; want %q", got, c.want)
		}
	}
	f.config.Store(nil) // as before the first Use
	got := f.fails(Request{Domain: "d", Descriptors: a})
	if got != "no rate limit configuration loaded" {
		t.Error(got)
	}
	if n := f.stats.ServiceError.Load(); n != 4 {
		t.Errorf("%d service errors", n)
	}
	f.stats.Visit(func(c Counter) {
		const name = "ratelimit.service.rate_limit.other.domain_not_found"
		if c.Domain == "other" && (c.Value != 1 || c.StatName() != name) {
			t.Error(c, c.StatName())
		}
	})
}

func TestLocalCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, Options{LocalCacheBytes: 1000}, twoLimits)
		f.want("ok: ok/0", hits(2, desc("b=1")))
		f.want("over: over/0", desc("b=1"))
		f.want("over: over/0", desc("b=1"))
		f.counted("b", "total_hits=4 over_limit=2 near_limit=1 "+
			"over_limit_with_local_cache=1 within_limit=2")
		hit, miss := f.stats.LocalCacheHits.Load(), f.stats.LocalCacheMisses.Load()
		if hit != 1 || miss != 2 {
			t.Error(hit, miss)
		}
		// A larger limit in the request does not share the denial; nor does the next window.
		d := desc("b=1")
		d.Override = &Override{RequestsPerUnit: 5, Unit: Hour}
		f.want("ok: ok/1", d)
		refund := hits(4, desc("b=1"))
		refund.Negative = true
		f.want("ok: ok/2", refund)
		f.want("ok: ok/1", desc("b=1"))
		f.want("over: over/0", hits(9, desc("b=1")))
		time.Sleep(time.Hour)
		f.want("ok: ok/1", desc("b=1"))
	})
}

// What a request leaves in memory that is used again points to nothing, also after a request of
// two rounds, the second of which is shorter.
func TestReleasedWorkHoldsNothing(t *testing.T) {
	f := newFixture(t, Options{}, `
domain: d
descriptors:
  - {key: a, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: b, limit: 5/h, descriptors: [{key: c}]}
`)
	req := Request{Domain: "d", Descriptors: []Descriptor{
		desc("b=1, c=1"), desc("a=1"), desc("b=1"), desc("b=2"),
	}}
	w := new(work)
	if err := f.prepare(w, f.Config(), &req); err != nil {
		t.Fatal(err)
	}
	if err := f.take(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.release(w)
	for _, r := range w.requests[:cap(w.requests)] {
		if r.Key != "" {
			t.Errorf("the request for %q is kept", r.Key)
		}
	}
	for _, s := range w.steps[:cap(w.steps)] {
		if s.node != nil {
			t.Errorf("the descriptor %q of the configuration is kept", s.node.name)
		}
	}
}

// A client that asks for twice its limit gets it, however Envoy sends the cost of its requests, and
// its debt is at most one request.
func TestHitsOfDescriptors(t *testing.T) {
	for _, c := range []struct {
		limit       string
		weight      uint64
		times       int
		least, most int
	}{
		{"10/s", 1, 120, 60, 75},
		{"50/s", 5, 120, 60, 75},
		{"100/s burst 10", 10, 120, 60, 75},
		{"10/s stepped", 1, 120, 60, 75},
		{"50/s stepped", 5, 120, 60, 75},
		{"10/s fixed-window", 1, 120, 60, 75},
		{"50/s fixed-window", 5, 120, 60, 75},
		{"10/s sliding-window", 1, 120, 55, 75}, // as without hits
		{"50/s sliding-window", 5, 120, 55, 75},
		{"10/s sliding-log", 1, 120, 60, 75},
		{"50/s sliding-log", 5, 120, 60, 75},
		{"13/day tz UTC", 5, 100, 3, 3}, // 15 of 13
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, Options{}, "domain: d\ndescriptors: [{key: a, limit: "+c.limit+"}]")
			granted := 0
			for range c.times {
				if f.ask(hits(c.weight, desc("a=1"))).Code == OK {
					granted++
				}
				time.Sleep(50 * time.Millisecond)
			}
			if granted < c.least || granted > c.most {
				t.Errorf("%s, %d hits a request: %d were granted", c.limit, c.weight, granted)
			}
		})
	}
}

// Bytes that are not UTF-8, and long values, are keys as others are.
func TestAnyBytes(t *testing.T) {
	f := newFixture(t, Options{}, `
domain: d
descriptors: [{key: a, detailed_metric: true, rate_limit: {unit: day, requests_per_unit: 1}}]`)
	for b := range 256 {
		f.want("ok: ok/0", Descriptor{Entries: []Entry{{"a", string([]byte{byte(b), 'x'})}}})
		f.want("over: over/0", Descriptor{Entries: []Entry{{"a", string([]byte{byte(b), 'x'})}}})
	}
	for _, n := range []int{1, 4_000, 5_000, 65_000, 100_000} {
		d := Descriptor{Entries: []Entry{{"a", strings.Repeat("y", n)}}}
		f.want("ok: ok/0", d)
		f.want("over: over/0", d)
		other := Descriptor{Entries: []Entry{{"a", strings.Repeat("y", n-1) + "z"}}}
		f.want("ok: ok/0", other)
	}
	f.stats.Visit(func(c Counter) {
		if len(c.Path) > maxText {
			t.Errorf("statistics keep a value of %d bytes", len(c.Path))
		}
	})
}

// Requests that run at the same time, and are charged afterwards, owe what they used, if the rule
// charges always. All or none does not drop such a charge.
func TestChargeAlways(t *testing.T) {
	for _, o := range []Options{{}, {StopWhenOverLimit: true}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFixture(t, o, "domain: d\ndescriptors: [{key: a, limit: 60000/h, charge_always: true}]")
			served := 0
			for range 360 { // an hour
				passed := 0
				for range 10 {
					if f.ask(hits(0, desc("a=1"))).Code == OK {
						passed++
					}
				}
				for range passed {
					f.ask(hits(1000, desc("a=1")))
					served += 1000
				}
				time.Sleep(10 * time.Second)
			}
			if served < 110_000 || served > 130_000 { // the burst, the rate, and one round
				t.Errorf("%d tokens were used in an hour of a limit of 60,000", served)
			}
		})
	}
}

// The statistics of hits of which a part fits count the rest as over the limit.
func TestOverdraftIsCounted(t *testing.T) {
	f := newFixture(t, Options{}, "domain: d\ndescriptors: [{key: a, limit: 10/h}]")
	f.want("ok: ok/2", hits(8, desc("a=1")))
	f.want("ok: ok/0", hits(6, desc("a=1")))
	got := map[string]uint64{}
	f.stats.Visit(func(c Counter) { got[c.Name] += c.Value })
	if got["within_limit"] != 10 || got["over_limit"] != 4 || got["near_limit"] != 2 {
		t.Errorf("%v", got)
	}
}

// A descriptor without entries has a text, and one of any bytes is in the metadata.
func TestTextsOfStrangeDescriptors(t *testing.T) {
	if got := (&Descriptor{}).Text(); got != "" {
		t.Errorf("%q", got)
	}
	f := newFixture(t, Options{DynamicMetadata: true}, `
domain: d
descriptors: [{key: a, metadata: {plan: free}, rate_limit: {unit: day, requests_per_unit: 9}}]`)
	r := f.ask(Descriptor{Entries: []Entry{{"a", "\xff"}}})
	if !strings.Contains(fmt.Sprint(r.Metadata), "free") {
		t.Errorf("%v", r.Metadata)
	}
}
