package overrides

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

func limit(t *testing.T, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func put(t *testing.T, table *Table, o rules.Override) {
	t.Helper()
	if err := table.Put(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// found returns what applies to key under the rule login: the first limit, ban or nothing.
func found(table *Table, key string) string {
	o, ok := table.Find("login", key)
	switch {
	case !ok:
		return "nothing"
	case o.Ban:
		return "ban"
	default:
		return o.Limits[0].String()
	}
}

func TestOrder(t *testing.T) {
	table := NewMemory()
	put(t, table, rules.Override{Rule: "login", Key: "*", Limits: []headgate.Limit{limit(t, "1/m")}})
	put(t, table, rules.Override{Rule: "login", Key: "ip:*", Limits: []headgate.Limit{limit(t, "2/m")}})
	put(t, table, rules.Override{Rule: "login", Key: "ip:a", Limits: []headgate.Limit{limit(t, "3/m")}})
	put(t, table, rules.Override{Rule: "other", Key: "ip:b", Ban: true})
	table.UseFile([]rules.Override{
		{Rule: "login", Key: "ip:c*", Limits: rules.Named("login", []headgate.Limit{limit(t, "4/m")})},
		{Rule: "login", Key: "ip:cd", Ban: true},
	})
	for key, want := range map[string]string{
		"ip:a": "login=3/m", "ip:b": "login=2/m", "user:1": "login=1/m", "ip:cd": "ban", "ip:ce": "login=4/m",
	} {
		if got := found(table, key); got != want {
			t.Errorf("key %q has %s, want %s", key, got, want)
		}
	}
	if _, ok := table.Find("third", "ip:a"); ok {
		t.Error("a rule without overrides has one")
	}
}

// In the file, too, a key of its own comes before a wildcard, if it has not expired.
func TestOrderInTheFile(t *testing.T) {
	past, future := time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	set := func(text string) []headgate.Limit {
		return rules.Named("login", []headgate.Limit{limit(t, text)})
	}
	table := NewMemory()
	table.UseFile([]rules.Override{
		{Rule: "login", Key: "ip:*", Limits: set("4/m")},
		{Rule: "login", Key: "ip:a", Limits: set("1/m"), Until: future},
		{Rule: "login", Key: "ip:b*", Ban: true, Until: past},
		{Rule: "login", Key: "ip:bc", Limits: set("3/m")},
		{Rule: "login", Key: "ip:d", Ban: true, Until: past},
		{Rule: "other", Key: "ip:e", Ban: true},
		{Rule: "login", Key: "user:*", Ban: true, Until: past},
	})
	for key, want := range map[string]string{
		"ip:a": "login=1/m", "ip:bc": "login=3/m", "ip:bd": "login=4/m", "ip:d": "login=4/m",
		"ip:e": "login=4/m", "user:1": "nothing",
	} {
		if got := found(table, key); got != want {
			t.Errorf("key %q has %s, want %s", key, got, want)
		}
	}
	if file, _ := table.List(); len(file) != 4 || file[0].Key != "ip:a" || file[3].Key != "ip:*" {
		t.Errorf("the list is %+v; want those that have not expired, wildcards last", file)
	}
}

func TestPutReplacesAndDelete(t *testing.T) {
	table := NewMemory()
	put(t, table, rules.Override{Rule: "login", Key: "k", Limits: []headgate.Limit{limit(t, "3/m")}})
	put(t, table, rules.Override{Rule: "login", Key: "k", Ban: true, Note: "abuse", By: "ops"})
	if got := found(table, "k"); got != "ban" {
		t.Fatalf("k has %s, want ban", got)
	}
	if _, list := table.List(); len(list) != 1 || list[0].Note != "abuse" || list[0].By != "ops" {
		t.Fatalf("the list is %+v", list)
	}
	for _, want := range []bool{true, false} {
		if had, err := table.Delete(t.Context(), "login", "k"); had != want || err != nil {
			t.Fatalf("Delete = %v, %v; want %v", had, err, want)
		}
	}
	if got := found(table, "k"); got != "nothing" {
		t.Fatalf("k has %s after the delete", got)
	}
	if n := table.loaded.count.Load(); n != 0 {
		t.Errorf("it counts %d overrides after the delete", n)
	}
}

// TestReplaceTheOnlyOne: the readers see the old override or the new one.
func TestReplaceTheOnlyOne(t *testing.T) {
	for _, key := range []string{"k", "k*"} {
		k := newIndex(nil)
		ban := &rules.Override{Rule: "login", Key: key, Ban: true}
		k.set("login", key, ban)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for range 200_000 {
				k.set("login", key, ban)
			}
		}()
		for more := true; more; {
			if k.count.Load() == 0 {
				t.Fatalf("%s: there is none for a moment", key)
			}
			select {
			case <-ended:
				more = false
			default:
			}
		}
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewMemory()
		put(t, table, rules.Override{Rule: "login", Key: "*", Limits: []headgate.Limit{limit(t, "3/m")}})
		for _, key := range []string{"k", "k*"} {
			put(t, table, rules.Override{
				Rule: "login", Key: key, Ban: true, Until: time.Now().Add(time.Minute),
			})
		}
		time.Sleep(time.Minute - time.Nanosecond)
		if got := found(table, "k"); got != "ban" {
			t.Errorf("k has %s before the end, want ban", got)
		}
		time.Sleep(time.Nanosecond)
		if got := found(table, "k"); got != "login=3/m" {
			t.Errorf("k has %s after the end, want what is behind it", got)
		}
		if _, list := table.List(); len(list) != 1 {
			t.Errorf("the list has %d overrides, want 1", len(list))
		}
	})
}

func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewMemory()
		table.max = 3
		for i := range 3 {
			put(t, table, rules.Override{
				Rule: "login", Key: fmt.Sprint(i), Ban: true, Until: time.Now().Add(time.Second),
			})
		}
		more := rules.Override{Rule: "login", Key: "3", Ban: true}
		err := table.Put(t.Context(), more)
		if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || !strings.Contains(err.Error(), "at most 3") {
			t.Fatalf("the error is %v, want at most 3", err)
		}
		put(t, table, rules.Override{Rule: "login", Key: "2", Ban: true}) // replaces
		time.Sleep(time.Second)
		put(t, table, more) // two have expired
	})
	table := NewMemory()
	for i := range MaxPatterns {
		put(t, table, rules.Override{Rule: "login", Key: fmt.Sprint(i, "*"), Ban: true})
	}
	err := table.Put(t.Context(), rules.Override{Rule: "login", Key: "more*", Ban: true})
	if err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Fatalf("the error is %v, want at most 1000", err)
	}
	put(t, table, rules.Override{Rule: "login", Key: "7*", Ban: true}) // replaces
}

func TestAsManyLimitsAsARuleMayHave(t *testing.T) {
	table := NewMemory()
	put(t, table, rules.Override{
		Rule: "login", Key: "k", Limits: slices.Repeat([]headgate.Limit{limit(t, "9/m")}, 16),
	})
	if o, _ := table.Find("login", "k"); len(o.Limits) != 16 {
		t.Errorf("the override has %d limits, want 16", len(o.Limits))
	}
}

func TestInvalid(t *testing.T) {
	table := NewMemory()
	five := []headgate.Limit{limit(t, "5/m")}
	for want, o := range map[string]rules.Override{
		"rule is empty":         {Key: "k", Ban: true},
		"0 limits and ban fals": {Rule: "login", Key: "k"},
		"1 limits and ban true": {Rule: "login", Key: "k", Ban: true, Limits: five},
		"until is 2001":         {Rule: "login", Ban: true, Until: time.Unix(1e9, 0)},
		"count is 0":            {Rule: "login", Limits: []headgate.Limit{headgate.PerSecond(0)}},
		"limits is 17":          {Rule: "login", Limits: make([]headgate.Limit, 17)},
	} {
		err := table.Put(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

func TestKeeperFails(t *testing.T) {
	table := newTable(failing{NewMemory().keeper})
	ban := encode(rules.Override{Rule: "login", Key: "k", Ban: true})
	table.loaded.apply(news{fields: map[string]string{KeyName("login", "k"): ban}}, table.report)
	if err := table.Refresh(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("Refresh returned %v", err)
	}
	if err := table.Put(t.Context(), rules.Override{Rule: "login", Ban: true}); !errors.Is(err, errDown) {
		t.Errorf("Put returned %v", err)
	}
	if got := found(table, "k"); got != "ban" {
		t.Errorf("k has %s, want the last override that was read", got)
	}
}

var errDown = errors.New("down")

type failing struct{ keeper }

func (failing) news(context.Context, string, Also) (news, error) { return news{}, errDown }
func (failing) change(context.Context, change) (outcome, error)  { return unchanged, errDown }

// looks is a keeper that counts how often it is read.
type looks struct {
	keeper

	n atomic.Int64
}

func (l *looks) news(ctx context.Context, version string, also Also) (news, error) {
	l.n.Add(1)
	return l.keeper.news(ctx, version, also)
}

// TestInterval: a change reaches an instance within a second.
func TestInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewMemory()
		l := &looks{keeper: table.keeper}
		table.keeper = l
		running(t, table)
		for second := range 10 {
			synctest.Wait()
			before := l.n.Load()
			if time.Sleep(time.Second); l.n.Load() == before {
				t.Errorf("no look for changes in second %d", second)
			}
		}
	})
}
