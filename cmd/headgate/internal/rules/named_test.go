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
	q := e.Question(Order{})
	for _, r := range list {
		a := Ask{Rule: r.Name, Key: key, Cost: RuleCost}
		if len(r.Key) == 0 {
			a.Key = ""
		}
		if err := q.Ask(a); err != nil {
			t.Fatal(err)
		}
	}
	answers, granted, err := q.Answer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return answers, granted
}

// arrivals is a store that holds each call until so many have come.
type arrivals struct {
	headgate.Store

	all *sync.WaitGroup
}

func (s arrivals) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	s.all.Done()
	s.all.Wait()
	return s.Store.Take(ctx, r)
}

// Rules in shadow are asked at the same time, and so are permits: each call waits for the others.
func TestAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(3)
		e := New(arrivals{Store: headgate.NewMemory(), all: &all}, concurrency.NewMemory(), Options{})
		e.Use(newSet(t, Rule{Name: "a", Limits: per(1), Mode: Shadow},
			Rule{Name: "b", Limits: per(1), Mode: Shadow}, Rule{Name: "c", Limits: per(1), Mode: Shadow}))
		decide(t, e, &Request{Path: "/"})
	})
}

// permitArrivals holds each call until so many have come.
type permitArrivals struct {
	concurrency.Store

	all *sync.WaitGroup
}

func (s permitArrivals) AcquirePermit(
	ctx context.Context, r concurrency.Request,
) (concurrency.Decision, error) {
	s.all.Done()
	s.all.Wait()
	return s.Store.AcquirePermit(ctx, r)
}

func TestPermitsAreAskedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(3)
		permits := concurrency.NewMemory()
		e := New(headgate.NewMemory(), permitArrivals{permits, &all}, Options{})
		e.Use(newSet(t, Rule{Name: "a", Permits: 1}, Rule{Name: "b", Permits: 1}, Rule{Name: "c", Permits: 1}))
		if v, a := begin(t, e, &Request{Path: "/"}); v.Allowed {
			a.End(t.Context())
		}
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
		{Ask{Rule: "exports", Key: "k"}, Order{}, `headgate: rule is "exports", which has permits and ` +
			`no limits; want a rule with limits, or /v1/acquire`},
		{Ask{Rule: "guard", Cost: 1}, Order{Settle: true},
			`headgate: rule is "guard", which counts denials; want another rule`},
	} {
		if err := e.Question(c.o).Ask(c.ask); err == nil || err.Error() != c.want {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	q := e.Question(Order{})
	var repeated *RepeatedError
	for i, a := range []Ask{{Rule: "guard"}, {Rule: "login", Key: "k"}, {Rule: "guard", Key: "all"}} {
		if err := q.Ask(a); (i == 2) != errors.As(err, &repeated) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if repeated.First != 0 || !strings.Contains(repeated.Error(), `"all" is asked for with the limit of ask 0`) {
		t.Errorf("%+v: %v", repeated, repeated)
	}
}
