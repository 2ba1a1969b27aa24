package rules

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// TestSwitchIsAsTheFileWithThatMode: random rules, switched at random, decide random requests as
// rules decide them that have these modes in the file.
func TestSwitchIsAsTheFileWithThatMode(t *testing.T) {
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) { switchAsTheFile(t, seed) })
	}
}

func switchAsTheFile(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 11))
	list := randomRules(random)
	var events [2][]string
	observe := func(i int) func(Event) {
		return func(e Event) {
			events[i] = append(events[i], fmt.Sprint(e.Rule.Name, e.Rule.Mode, e.Key, e.Cost, e.Outcome, e.Decision))
		}
	}
	switched := newEngine(t, Options{Observe: observe(0)}, list...)
	filed := newEngine(t, Options{Observe: observe(1)}, list...)
	for range 300 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		if random.IntN(20) == 0 {
			modes, other := randomModes(random, list)
			switched.Switch(modes)
			filed.Use(newSet(t, other...))
			if random.IntN(2) == 0 { // a reload keeps the switches
				switched.Use(newSet(t, list...))
			}
		}
		q := &Request{
			Method: []string{"GET", "POST"}[random.IntN(2)], Path: []string{"/", "/a", "/a/b"}[random.IntN(3)],
			Client: netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(3))}), Header: http.Header{},
		}
		got, want := decide(t, switched, q), decide(t, filed, q)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: switched %+v, in the file %+v", seed, got, want)
		}
	}
	if !reflect.DeepEqual(events[0], events[1]) {
		t.Fatalf("seed %d: the events differ:\n%v\n%v", seed, events[0], events[1])
	}
	if len(events[0]) == 0 {
		t.Fatal("nothing was observed")
	}
}

func randomRules(random *rand.Rand) (list []Rule) {
	for i := range 1 + random.IntN(5) {
		r := Rule{
			Name: fmt.Sprint("r", i), Mode: Mode(random.IntN(3)),
			Limits: []headgate.Limit{headgate.PerMinute(1 + random.Int64N(5))},
			Match:  Match{Path: []string{"", "/a", "/a/*", "re:^/a"}[random.IntN(4)]},
		}
		if random.IntN(2) == 0 {
			r.Key = []KeyPart{{Source: "ip"}}
		}
		list = append(list, r)
	}
	return list
}

// randomModes returns switches, and the rules of list as they are then. One name has no rule.
func randomModes(random *rand.Rand, list []Rule) (modes map[string]Mode, other []Rule) {
	modes = map[string]Mode{"gone": Shadow}
	other = append(other, list...)
	for i := range other {
		if random.IntN(2) == 0 {
			other[i].Mode = Mode(random.IntN(3))
			modes[other[i].Name] = other[i].Mode
		}
	}
	return modes, other
}

// TestRulesInForce: the list has both modes, and a switch that ends leaves the file's Set.
func TestRulesInForce(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "a", Limits: per(1)}, Rule{Name: "b", Limits: per(1), Mode: Off})
	before := e.active.Load().Set
	e.Switch(map[string]Mode{"b": Enforce})
	list := e.Rules()
	if len(list) != 2 || list[0].Mode != Enforce || list[1].Mode != Enforce || list[1].FileMode != Off {
		t.Errorf("the rules are %+v", list)
	}
	if terms, err := e.Terms("b", "all"); err != nil || terms.Mode != Enforce || terms.Rule.Mode != Enforce {
		t.Errorf("the terms of b are %+v, %v", terms, err)
	}
	e.Switch(map[string]Mode{"a": Enforce})
	if e.active.Load().Set != before {
		t.Error("switches that change nothing made another Set")
	}
}

// TestSwitchKeepsState: what was used in one mode counts in the other, and a permit that was
// acquired before a switch is released after it.
func TestSwitchKeepsState(t *testing.T) {
	e := newEngine(t, Options{}, Rule{Name: "a", Limits: per(2), Permits: 1})
	v, work, err := e.Match(&Request{Path: "/"}).Begin(t.Context())
	if err != nil || !v.Allowed {
		t.Fatalf("%+v, %v", v, err)
	}
	e.Switch(map[string]Mode{"a": Shadow})
	for range 3 {
		if v := decide(t, e, &Request{Path: "/"}); !v.Allowed {
			t.Fatalf("in shadow: %+v", v)
		}
	}
	e.Switch(nil)
	if v := decide(t, e, &Request{Path: "/"}); v.Allowed || v.Reason != Limits {
		t.Errorf("in enforce again: %+v", v)
	}
	work.End(t.Context())
	terms, _ := e.Terms("a", "all")
	if err := e.store.Reset(t.Context(), "all", terms.Limits[0]); err != nil {
		t.Fatal(err)
	}
	if v, _, err := e.Match(&Request{Path: "/"}).Begin(t.Context()); err != nil || !v.Allowed {
		t.Errorf("the permit was not released: %+v, %v", v, err)
	}
}
