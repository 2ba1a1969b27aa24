package actions

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
)

// instance is an executor, and what it works on.
type instance struct {
	*Executor

	t      *testing.T
	store  headgate.Store
	engine *rules.Engine
	table  *overrides.Table
}

// newInstance makes an instance with the rules
//
//	login   5/m, 100/d fixed-window for each ip
//	any     10/h for keys of programs
//	trial   3/m in shadow
//	jobs    2 permits
func newInstance(t *testing.T, redis *redisstore.Store) *instance {
	t.Helper()
	f := &instance{t: t, table: overrides.NewMemory()}
	f.store = headgate.NewMemory()
	if redis != nil {
		f.store, f.table = redis, overrides.NewRedis(redis, nil, nil)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { f.table.Run(ctx, nil) })
	t.Cleanup(func() { cancel(); running.Wait() })
	f.engine = rules.New(f.store, concurrency.NewMemory(), rules.Options{Overrides: f.table})
	set, err := rules.NewSet([]rules.Rule{
		{Name: "login", Limits: limits(t, "5/m", "100/d fixed-window"), Key: []rules.KeyPart{{Source: "ip"}}},
		{Name: "any", Limits: limits(t, "10/h")},
		{Name: "trial", Limits: limits(t, "3/m"), Mode: rules.Shadow},
		{Name: "jobs", Permits: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.engine.Use(set)
	f.table.Follow(f.engine.Switch, func(overrides.Reset) {})
	f.Executor = New(Options{Store: f.store, Engine: f.engine, Overrides: f.table, Redis: redis})
	return f
}

func limits(t *testing.T, texts ...string) (list []headgate.Limit) {
	t.Helper()
	for _, text := range texts {
		l, err := headgate.ParseLimit(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, l)
	}
	return list
}

func (f *instance) do(o Order) Action {
	f.t.Helper()
	if o.By == "" {
		o.By = "Ann"
	}
	a, err := f.Do(f.t.Context(), o)
	if err != nil {
		f.t.Fatalf("%+v: %v", o, err)
	}
	if a.Kind != o.Kind || a.Rule != o.Rule || a.By != o.By || a.Note != o.Note || a.Undone != nil {
		f.t.Fatalf("the act is %+v, want %+v", a, o)
	}
	return a
}

func (f *instance) undo(a Action) {
	f.t.Helper()
	undone, err := f.Undo(f.t.Context(), a.ID, "Bob")
	if err != nil {
		f.t.Fatalf("undo %+v: %v", a, err)
	}
	if undone.Undone == nil || undone.Undone.By != "Bob" || undone.Undoable {
		f.t.Fatalf("the act is %+v after the undo", undone)
	}
}

// refused fails unless err is an [Error] with the text.
func (f *instance) refused(err error, conflict bool, text string) {
	f.t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Conflict != conflict || !strings.Contains(e.Text, text) {
		f.t.Errorf("the error is %v, want %q, conflict %v", err, text, conflict)
	}
}

func (f *instance) undoRefused(a Action, text string) {
	f.t.Helper()
	_, err := f.Undo(f.t.Context(), a.ID, "Bob")
	f.refused(err, true, text)
}

// use takes tokens of a key, whether or not they fit.
func (f *instance) use(rule, key string, n int64) {
	f.t.Helper()
	terms, err := f.engine.Terms(rule, key)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, l := range terms.Limits {
		if _, err := f.store.Take(f.t.Context(), headgate.Request{Key: key, Limit: l, Cost: n, Force: true}); err != nil {
			f.t.Fatal(err)
		}
	}
}

// state returns what applies to a key: "ban", or what remains of each limit.
func (f *instance) state(rule, key string) string {
	f.t.Helper()
	terms, err := f.engine.Terms(rule, key)
	if err != nil {
		f.t.Fatal(err)
	}
	if terms.Banned {
		return "ban"
	}
	var left []string
	for _, l := range terms.Limits {
		d, err := f.store.Take(f.t.Context(), headgate.Request{Key: key, Limit: l})
		if err != nil {
			f.t.Fatal(err)
		}
		left = append(left, fmt.Sprintf("%d of %d", d.Remaining, l.Capacity()))
	}
	return strings.Join(left, ", ")
}

func (f *instance) want(rule, key, want string) {
	f.t.Helper()
	if got := f.state(rule, key); got != want {
		f.t.Errorf("the key %q of %s has %s, want %s", key, rule, got, want)
	}
}

const ip = "ip:192.0.2.1"

// both runs f with a store in memory, and with a real Redis.
func both(t *testing.T, f func(t *testing.T, i *instance)) {
	t.Run("memory", func(t *testing.T) { f(t, newInstance(t, nil)) })
	t.Run("redis", func(t *testing.T) { f(t, newInstance(t, open(t, redistest.Start(t)))) })
}

func open(t *testing.T, server *redistest.Server) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open("redis://" + server.Addr + redistest.Patient)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func TestEachActAndItsUndo(t *testing.T) {
	both(t, func(t *testing.T, f *instance) {
		f.use("login", ip, 4)
		f.want("login", ip, "1 of 5, 96 of 100")

		reset := f.do(Order{Kind: Reset, Rule: "login", Key: ip, Note: "a customer called"})
		f.want("login", ip, "5 of 5, 100 of 100")
		if reset.Undoable {
			t.Errorf("the reset is %+v", reset)
		}
		_, err := f.Undo(t.Context(), reset.ID, "Bob")
		f.refused(err, false, "a reset cannot be undone")
		f.use("login", ip, 4)
		f.want("login", ip, "1 of 5, 96 of 100")

		ban := f.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Hour})
		f.want("login", ip, "ban")
		f.undo(ban)
		f.want("login", ip, "1 of 5, 96 of 100")

		raise := f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "50/m")})
		f.want("login", ip, "50 of 50")
		f.undo(raise) // the override ends; what was used before stays cleared
		f.want("login", ip, "5 of 5, 100 of 100")
		f.use("login", ip, 4)

		keep := f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "50/m"), KeepUsage: true})
		f.want("login", ip, "10 of 50")
		f.undo(keep)
		f.want("login", ip, "1 of 5, 96 of 100")

		raise = f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "50/m"), KeepUsage: true})
		ban = f.do(Order{Kind: Ban, Rule: "login", Key: ip})
		lift := f.do(Order{Kind: Lift, Rule: "login", Key: ip})
		f.want("login", ip, "1 of 5, 96 of 100")
		f.undoRefused(raise, "was changed after this action")
		f.undo(lift)
		f.want("login", ip, "ban")
		f.undo(ban)
		f.want("login", ip, "10 of 50")
		f.undo(raise)
		f.want("login", ip, "1 of 5, 96 of 100")
		f.undoRefused(raise, "already undone")

		f.checkModes()
		list, err := f.List(t.Context())
		if err != nil || len(list) != 10 || list[0].Kind != Mode || list[9].Note != "a customer called" {
			t.Fatalf("the list is %+v, %v", list, err)
		}
		for _, a := range list {
			if (a.Undone == nil) != (a.Kind == Reset) || a.Undoable || a.By != "Ann" {
				t.Errorf("the list has %+v", a)
			}
		}
	})
}

func (f *instance) checkModes() {
	f.t.Helper()
	mode := func(want rules.Mode) {
		f.t.Helper()
		if terms, err := f.engine.Terms("login", ip); err != nil || terms.Mode != want {
			f.t.Errorf("the mode is %v, %v, want %v", terms.Mode, err, want)
		}
	}
	shadow := f.do(Order{Kind: Mode, Rule: "login", Mode: "shadow", Note: "too tight"})
	mode(rules.Shadow)
	if m := f.table.Modes(); len(m) != 1 || m[0].By != "Ann" || m[0].Note != "too tight" || m[0].At.UnixMilli() != shadow.At {
		f.t.Errorf("the modes are %+v", m)
	}
	file := f.do(Order{Kind: Mode, Rule: "login", Mode: ModeOfFile})
	mode(rules.Enforce)
	f.undoRefused(shadow, `the mode of rule "login" was changed`)
	f.undo(file)
	mode(rules.Shadow)
	enforce := f.do(Order{Kind: Mode, Rule: "login", Mode: "enforce"}) // as in the file: the switch ends
	if m := f.table.Modes(); len(m) != 0 {
		f.t.Errorf("the modes are %+v", m)
	}
	f.undo(enforce)
	f.undo(shadow)
	mode(rules.Enforce)
}

// TestRefused: orders that would do nothing, or not what they seem to do.
func TestRefused(t *testing.T) {
	both(t, func(t *testing.T, f *instance) {
		f.table.UseFile([]rules.Override{{Rule: "login", Key: "ip:10.*", Ban: true}})
		for _, c := range []struct {
			o    Order
			want string
		}{
			{Order{Kind: Ban, Rule: "login", Key: "192.0.2.1"}, `want one such as "ip:..."`},
			{Order{Kind: Ban, Rule: "login", Key: ""}, `want one such as "ip:..."`},
			{Order{Kind: Ban, Rule: "login", Key: "ip:10.0.0.1"}, "takes precedence: change the file"},
			{Order{Kind: Reset, Rule: "login", Key: "ip:192.*"}, "reset one key at a time"},
			{Order{Kind: Reset, Rule: "jobs", Key: "k"}, "has no limits"},
			{Order{Kind: Lift, Rule: "login", Key: "ip:10.0.0.1"}, "is in the file"},
			{Order{Kind: Ban, Rule: "edge/remote_address", Key: "k"}, "Envoy's format, which has no overrides"},
			{Order{Kind: Mode, Rule: "edge/remote_address", Mode: "shadow"}, "Envoy's format"},
		} {
			_, err := f.Do(t.Context(), c.o)
			f.refused(err, false, c.want)
		}
		for _, c := range []struct {
			o    Order
			want string
		}{
			{Order{Kind: Lift, Rule: "login", Key: ip}, "there is no override"},
			{Order{Kind: Mode, Rule: "login", Mode: "enforce"}, "the file says enforce"},
			{Order{Kind: Mode, Rule: "login", Mode: ModeOfFile}, "already in the mode of the file"},
		} {
			_, err := f.Do(t.Context(), c.o)
			f.refused(err, true, c.want)
		}
		for want, o := range map[string]Order{
			"act is":        {Kind: "burn", Rule: "login", Key: ip},
			"limits is":     {Kind: Raise, Rule: "login", Key: ip},
			"keep_usage is": {Kind: Raise, Rule: "login", Key: "ip:192.*", Limits: limits(t, "9/m")},
			"mode is":       {Kind: Mode, Rule: "login", Mode: "off"},
		} {
			_, err := f.Do(t.Context(), o)
			if _, ok := errors.AsType[*headgate.InvalidError](err); !ok || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %q", err, want)
			}
		}
		for _, o := range []Order{
			{Kind: Ban, Rule: "nobody", Key: ip}, {Kind: Mode, Rule: "nobody", Mode: "shadow"},
			{Kind: Mode, Rule: "nobody", Mode: ModeOfFile},
		} {
			_, err := f.Do(t.Context(), o)
			if _, ok := errors.AsType[*rules.NoRuleError](err); !ok {
				t.Errorf("the error of a rule that does not exist is %v", err)
			}
		}
		if _, err := f.Undo(t.Context(), "000", "Bob"); !errors.Is(err, ErrNoAction) {
			t.Errorf("the undo of nothing returned %v", err)
		}
		if list, err := f.List(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("what was refused is in the list: %+v, %v", list, err)
		}
	})
}

// TestKeysAreAnyText: spaces, slashes, HTML and other scripts reach the store as they are.
func TestKeysAreAnyText(t *testing.T) {
	both(t, func(_ *testing.T, f *instance) {
		for _, key := range []string{
			"a b", "a/../b", "<script>alert(1)</script>", "Ключ 鍵 🔑", `"'\`, "@reset x", "a\nb", "%2F", "", "*",
		} {
			act := Order{Kind: Ban, Rule: "any", Key: key, Note: "<b>" + key, By: "Ann </b>"}
			ban := f.do(act)
			if key == "" {
				key = rules.KeyOfAll
			}
			f.want("any", key, "ban")
			f.undo(ban)
			f.want("any", key, "10 of 10")
			if key == "*" {
				continue
			}
			f.use("any", key, 3)
			f.do(Order{Kind: Reset, Rule: "any", Key: key})
			f.want("any", key, "10 of 10")
		}
	})
}

// TestWildcards: a ban of many keys, which ends for the key that has an override of its own.
func TestWildcards(t *testing.T) {
	both(t, func(_ *testing.T, f *instance) {
		ban := f.do(Order{Kind: Ban, Rule: "login", Key: "ip:192.0.2.*", For: time.Minute})
		f.want("login", ip, "ban")
		raise := f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "9/m")})
		f.want("login", ip, "9 of 9")
		f.want("login", "ip:192.0.2.2", "ban")
		f.undo(ban)
		f.want("login", "ip:192.0.2.2", "5 of 5, 100 of 100")
		f.want("login", ip, "9 of 9")
		f.undo(raise)
	})
}

// TestExpiry: what has expired comes back neither by itself nor by an undo, and what it has replaced
// comes back by an undo.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInstance(t, nil)
		raise := f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "9/m"), KeepUsage: true, For: time.Hour})
		ban := f.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Minute})
		shadow := f.do(Order{Kind: Mode, Rule: "login", Mode: "shadow", For: time.Minute})
		if *ban.Until-ban.At != 60_000 || !ban.Undoable || !shadow.Undoable {
			t.Errorf("the ban is %+v", ban)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		f.want("login", ip, "5 of 5, 100 of 100")
		list, err := f.List(t.Context())
		if err != nil || list[0].Undoable || !list[1].Undoable || list[2].Undoable {
			t.Errorf("the list is %+v, %v", list, err)
		}
		f.undo(ban)
		f.want("login", ip, "9 of 9")
		time.Sleep(time.Hour)
		f.undo(raise) // and nothing changes
		f.want("login", ip, "5 of 5, 100 of 100")
		if terms, _ := f.engine.Terms("login", ip); terms.Mode != rules.Enforce {
			t.Errorf("after a minute, the mode is %v", terms.Mode)
		}
	})
}

// TestUndoAfterAnotherHand: an override that was put through /v1/overrides is not overwritten.
func TestUndoAfterAnotherHand(t *testing.T) {
	both(t, func(t *testing.T, f *instance) {
		ban := f.do(Order{Kind: Ban, Rule: "login", Key: ip})
		if err := f.table.Put(t.Context(), rules.Override{Rule: "login", Key: ip, Limits: limits(t, "8/m")}); err != nil {
			t.Fatal(err)
		}
		f.undoRefused(ban, "was changed after this action")
		f.want("login", ip, "8 of 8")
	})
}
