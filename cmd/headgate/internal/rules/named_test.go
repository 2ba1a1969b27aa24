package rules

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
)

// A program that names the keys of a request gets the answer that the request gets, with the same
// events and the same state after it.
func TestNamedKeysAreDecidedAsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for seed := range uint64(100) {
			r := rand.New(rand.NewPCG(seed, 1))
			list := rulesByChance(r)
			bans := overrides{{Rule: list[0].Name, Key: "ip:192.0.2.9", Ban: true}}
			var seen, seenNamed recorder
			matched := newEngine(t, Options{Observe: seen.observe, Overrides: bans}, list...)
			named := newEngine(t, Options{Observe: seenNamed.observe, Overrides: bans}, list...)
			for range 30 {
				client := netip.AddrFrom4([4]byte{192, 0, 2, byte(7 + r.IntN(3))})
				v, err := matched.Match(&Request{Path: "/", Client: client}).Decide(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				answers, granted := askAll(t, named, list, "ip:"+client.String())
				if granted != v.Allowed {
					t.Fatalf("seed %d: request %+v, named %v %+v", seed, v, granted, answers)
				}
				if got, want := seenNamed.since(), seen.since(); got != want {
					t.Fatalf("seed %d: events %s; want %s", seed, got, want)
				}
				for _, rule := range list {
					key := rule.keyOf(client)
					if got, want := left(t, named, rule.Name, key), left(t, matched, rule.Name, key); got != want {
						t.Fatalf("seed %d: %s has %d left; want %d", seed, rule.Name, got, want)
					}
				}
				time.Sleep(time.Duration(r.IntN(500)) * time.Millisecond)
			}
		}
	})
}

// rulesByChance returns rules that enforce, count denials, or are in shadow.
func rulesByChance(r *rand.Rand) []Rule {
	list := make([]Rule, 1+r.IntN(4))
	for i := range list {
		rule := Rule{Name: fmt.Sprint("r", i), Limits: []headgate.Limit{headgate.PerSecond(1 + r.Int64N(4))}}
		if r.IntN(2) == 0 {
			rule.Key = []KeyPart{{Source: "ip"}}
		}
		if r.IntN(3) == 0 {
			rule.Limits = append(rule.Limits, headgate.FixedWindow(1+r.Int64N(9), 2*time.Second))
		}
		switch r.IntN(4) {
		case 0:
			rule.Mode = Shadow
		case 1:
			rule.Count.Denied = true
		default:
			rule.Cost.Fixed = 1 + r.Int64N(2)
		}
		list[i] = rule
	}
	return list
}

// keyOf returns the key of a client.
func (r *Rule) keyOf(client netip.Addr) string {
	if len(r.Key) == 0 {
		return KeyOfAll
	}
	return "ip:" + client.String()
}

// askAll names the key of each rule.
func askAll(t *testing.T, e *Engine, list []Rule, key string) ([]Answer, bool) {
	t.Helper()
	var asks []Ask
	for _, r := range list {
		a := Ask{Rule: r.Name, Key: key, Cost: RuleCost}
		if len(r.Key) == 0 {
			a.Key = ""
		}
		asks = append(asks, a)
	}
	answers, granted, err := e.Answer(t.Context(), Order{}, asks...)
	if err != nil {
		t.Fatal(err)
	}
	return answers, granted
}

// trips counts the calls of a store.
type trips struct {
	headgate.Store

	n int
}

func (s *trips) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	s.n++
	return s.Store.Take(ctx, r)
}

func (s *trips) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	s.n++
	return s.Store.TakeAll(ctx, rs, ds)
}

// Rules in shadow are asked in one trip, and in one more after some of them have denied. Each decides
// by itself.
func TestShadowsShareATrip(t *testing.T) {
	s := &trips{Store: headgate.NewMemory()}
	var seen recorder
	e := New(s, nil, Options{Observe: seen.observe})
	e.Use(newSet(t, Rule{Name: "a", Limits: per(3), Mode: Shadow},
		Rule{Name: "b", Limits: per(1), Mode: Shadow}, Rule{Name: "c", Limits: per(2), Mode: Shadow}))
	for i, want := range []struct {
		trips  int
		events string
	}{
		{1, "a allowed, b allowed, c allowed"},
		{2, "a allowed, b shadow_denied, c allowed"},
		{2, "a allowed, b shadow_denied, c shadow_denied"},
		{1, "a shadow_denied, b shadow_denied, c shadow_denied"},
	} {
		s.n = 0
		decide(t, e, &Request{Path: "/"})
		if got := seen.since(); s.n != want.trips || got != want.events {
			t.Errorf("request %d: %d trips, %s", i, s.n, got)
		}
	}
}

// A request that waits for a permit, or that is denied one, holds none of the rules behind.
func TestPermitsInTheOrderOfTheRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		permits := concurrency.NewMemory()
		e := New(headgate.NewMemory(), permits, Options{})
		e.Use(newSet(t, Rule{Name: "client", Key: []KeyPart{{Source: "ip"}}, Permits: 1, MaxWait: 20 * time.Second},
			Rule{Name: "all", Permits: 2}))
		one := &Request{Path: "/", Client: netip.MustParseAddr("192.0.2.1")}
		_, running := begin(t, e, one)
		ctx, leave := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() { _, _, _ = e.Match(one).Begin(ctx) })
		}
		synctest.Wait()
		other := &Request{Path: "/", Client: netip.MustParseAddr("192.0.2.2")}
		if v, a := begin(t, e, other); !v.Allowed {
			t.Errorf("%+v", v)
		} else {
			a.End(ctx)
		}
		leave()
		waiting.Wait()
		running.End(t.Context())
		if n := permits.Keys(); n != 0 {
			t.Errorf("%d keys have permits", n)
		}
	})
}

// If one of several permits is not free, the others are free again.
func TestPermitsAllOrNone(t *testing.T) {
	permits := concurrency.NewMemory()
	var seen recorder
	e := New(headgate.NewMemory(), permits, Options{Observe: seen.observe})
	e.Use(newSet(t, Rule{Name: "two", Permits: 2}, Rule{Name: "one", Permits: 1}, Rule{Name: "tokens", Limits: per(5)}))
	_, first := begin(t, e, &Request{Path: "/"})
	seen.since()
	for range 3 {
		if v, _ := begin(t, e, &Request{Path: "/"}); v.Allowed || v.Rule != "one" || v.Reason != Permits {
			t.Errorf("%+v", v)
		}
	}
	if got := seen.since(); got != "one denied, one denied, one denied" {
		t.Error(got)
	}
	first.End(t.Context())
	if n, got := permits.Keys(), left(t, e, "tokens", "all"); n != 0 || got != 4 {
		t.Errorf("%d keys have permits, %d tokens remain", n, got)
	}
}

func TestAskRefuses(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "login", Key: []KeyPart{{Source: "ip"}}, Limits: per(5)},
		Rule{Name: "exports", Permits: 2},
		Rule{Name: "guard", Limits: per(3), Count: Count{Denied: true}})
	for _, c := range []struct {
		ask  Ask
		o    Order
		want string
	}{
		{Ask{Rule: "login"}, Order{}, "headgate: key is missing; want a key such as ip:192.0.2.1"},
		{Ask{Limit: headgate.PerSecond(1)}, Order{}, "headgate: key is missing; want a key such as ip:192.0.2.1"},
		{Ask{Rule: "none", Key: "k"}, Order{}, `rules: there is no rule "none"`},
		{Ask{Rule: "login", Key: "user:42"}, Order{},
			`"user:42" is not a key of rule "login"; want one such as "ip:...", or any_key: true in the rule`},
		{Ask{Rule: "exports", Key: "k"}, Order{}, `headgate: rule is "exports", which has permits and ` +
			`no limits; want a rule with limits, or /v1/acquire`},
		{Ask{Rule: "guard", Cost: 1}, Order{Settle: true},
			`headgate: rule is "guard", which counts denials; want another rule`},
	} {
		if _, _, err := e.Answer(t.Context(), c.o, c.ask); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	_, _, err := e.Answer(t.Context(), Order{}, Ask{Rule: "guard"}, Ask{Rule: "login", Key: "ip:192.0.2.1"},
		Ask{Rule: "guard", Key: "all"})
	wrong, ok := errors.AsType[*AskError](err)
	if want := `headgate: key is "all", with the same limit as in requests[0]; `; !ok ||
		wrong.Index != 2 || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

// A program may name keys that a rule does not make if the rule says so, and the hash of a key.
func TestAnyKey(t *testing.T) {
	ip := []KeyPart{{Source: "ip"}}
	e := newEngine(t, Options{}, Rule{Name: "strict", Key: ip, Limits: per(5), Permits: 1},
		Rule{Name: "any", Key: ip, AnyKey: true, Limits: per(5), Permits: 1})
	hash := "hash:" + strings.Repeat("A", 22)
	for _, c := range []struct {
		rule, key string
		made      bool
	}{
		{"any", "user:42", true}, {"any", "ip:192.0.2.1", true}, {"any", hash, true},
		{"strict", "ip:192.0.2.1", true}, {"strict", hash, true}, {"strict", "user:42", false},
	} {
		ask := Ask{Rule: c.rule, Key: c.key, Cost: 1}
		_, _, took := e.Answer(t.Context(), Order{}, ask)
		_, acquired := e.AcquirePermit(t.Context(), ask, time.Second)
		_, _, settled := e.Settle(t.Context(), ask, nil) // of a reservation before a reload
		_, reset := e.Reset(t.Context(), c.rule, c.key)
		if (took == nil) != c.made || (acquired == nil) != c.made || (reset == nil) != c.made ||
			settled != nil {
			t.Errorf("%s %s: %v, %v, %v, %v", c.rule, c.key, took, acquired, settled, reset)
		}
	}
}

// A rule without limits that an override gives some can be asked, and reset. A rule that counts
// denials has no reservations, also in shadow.
func TestLimitsOfAnOverride(t *testing.T) {
	e := newEngine(t, Options{Overrides: overrides{{Rule: "exports", Key: "k", Limits: per(1)}}},
		Rule{Name: "exports", Permits: 2},
		Rule{Name: "trial", Limits: per(3), Count: Count{Denied: true}, Mode: Shadow})
	for _, allowed := range []bool{true, false} {
		answers, _, err := e.Answer(t.Context(), Order{}, Ask{Rule: "exports", Key: "k", Cost: 1})
		if err != nil || answers[0].Allowed != allowed {
			t.Errorf("%+v, %v", answers, err)
		}
	}
	if _, err := e.Reset(t.Context(), "exports", "k"); err != nil || left(t, e, "exports", "k") != 1 {
		t.Error(err)
	}
	if _, _, err := e.Answer(t.Context(), Order{Settle: true}, Ask{Rule: "trial"}); err == nil {
		t.Error("reserved")
	}
}

// A ban is no denial that counts, whatever the other rules would have said.
func TestBanIsNotCounted(t *testing.T) {
	e := newEngine(t, Options{Overrides: overrides{
		{Rule: "banned", Key: "k", Ban: true, Until: time.Now().Add(time.Minute)},
	}}, Rule{Name: "banned", Limits: per(5)}, Rule{Name: "spent", Limits: per(1)},
		Rule{Name: "guard", Limits: per(3), Count: Count{Denied: true}})
	asks := []Ask{{Rule: "spent", Key: "k", Cost: 1}, {Rule: "guard", Key: "k", Cost: 1},
		{Rule: "banned", Key: "k", Cost: 1}}
	for _, n := range []int{1, 3, 3} {
		if _, granted, err := e.Answer(t.Context(), Order{}, asks[:n]...); err != nil || granted != (n == 1) {
			t.Error(n, granted, err)
		}
	}
	if got := left(t, e, "guard", "k"); got != 3 {
		t.Errorf("guard has %d left; want 3", got)
	}
}

// The verdict names the rule that denies for the longest. Its decisions are of the limits that
// denied: there is none if a permit did, also beside a rule that counts denials.
func TestVerdictOfSeveralRules(t *testing.T) {
	e := newEngine(t, Options{},
		Rule{Name: "guard", Limits: per(9), Count: Count{Denied: true}},
		Rule{Name: "hour", Limits: per(1), Match: Match{Path: "/limits"}},
		Rule{Name: "day", Limits: []headgate.Limit{headgate.PerDay(1)}, Match: Match{Path: "/limits"}},
		Rule{Name: "minute", Limits: []headgate.Limit{headgate.PerMinute(1)}, Match: Match{Path: "/limits"}},
		Rule{Name: "one", Permits: 1, Match: Match{Path: "/permits"}})
	for _, c := range []struct {
		path, rule string
		reason     Reason
		decisions  int
	}{{"/limits", "day", Limits, 3}, {"/permits", "one", Permits, 0}} {
		q := &Request{Path: c.path}
		begin(t, e, q)
		v, _ := begin(t, e, q)
		if v.Rule != c.rule || v.Reason != c.reason || len(v.Decisions) != c.decisions {
			t.Errorf("%+v", v)
		}
	}
	if got := left(t, e, "guard", "all"); got != 7 {
		t.Errorf("guard has %d left; want 7, as both denials count", got)
	}
}
