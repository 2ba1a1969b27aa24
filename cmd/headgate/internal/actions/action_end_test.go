package actions

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// ends returns why each action of the list has ended, the newest first.
func (f *instance) ends() (list []string) {
	f.t.Helper()
	acts, err := f.List(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range acts {
		why := "-"
		if a.Ended != nil {
			why = a.Ended.Why
			if a.Ended.By != "" {
				why += " by " + a.Ended.By
			}
			if a.Ended.At != nil {
				why += fmt.Sprint(" after ", time.UnixMilli(*a.Ended.At).Sub(time.UnixMilli(a.At)).Round(time.Second))
			}
		}
		list = append(list, why)
	}
	return list
}

// TestEnded: the list says which actions are not in force any more, and why.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newInstance(t, nil)
		want := func(list ...string) {
			t.Helper()
			if got := f.ends(); fmt.Sprint(got) != fmt.Sprint(list) {
				t.Errorf("the ends are %q, want %q", got, list)
			}
		}
		f.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Minute})
		want("-")
		time.Sleep(2 * time.Minute)
		want("expired after 1m0s")

		ban := f.do(Order{Kind: Ban, Rule: "login", Key: ip})
		time.Sleep(3 * time.Second)
		lift := f.do(Order{Kind: Lift, Rule: "login", Key: ip, By: "Bob"})
		want("-", "lift by Bob after 3s", "expired after 1m0s")
		f.undo(lift)
		want("-", "-", "expired after 1m0s")
		f.undo(ban)

		f.do(Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "9/m"), For: time.Hour})
		time.Sleep(time.Second)
		again := f.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Minute})
		want("-", "ban by Ann after 1s", "-", "-", "expired after 1m0s")
		time.Sleep(time.Minute)
		want("expired after 1m0s", "ban by Ann after 1s", "-", "-", "expired after 1m0s")
		f.undo(again)
		want("-", "-", "-", "-", "expired after 1m0s")

		f.do(Order{Kind: Mode, Rule: "any", Mode: "shadow"})
		time.Sleep(time.Second)
		f.do(Order{Kind: Mode, Rule: "any", Mode: ModeOfFile})
		if got := f.ends(); got[0] != "-" || got[1] != "mode by Ann after 1s" {
			t.Errorf("of a switch: %q", got)
		}
		time.Sleep(settling)
		if err := f.table.Put(t.Context(), rules.Override{Rule: "login", Key: ip, Ban: true}); err != nil {
			t.Fatal(err)
		}
		if got := f.ends(); got[3] != "other" {
			t.Errorf("after a change by another way: %q", got)
		}
	})
}

// TestReplaced: an action says what it replaces, and does not replace a ban with something that ends
// before it.
func TestReplaced(t *testing.T) {
	both(t, func(t *testing.T, f *instance) {
		raise := func(text, key string) Order {
			return Order{Kind: Raise, Rule: "login", Key: key, Limits: limits(t, text), KeepUsage: true}
		}
		if a := f.do(raise("9/m", ip)); a.Replaced != nil {
			t.Errorf("the first replaces %+v", a.Replaced)
		}
		a := f.do(Order{Kind: Ban, Rule: "login", Key: ip, For: time.Hour, Note: "scan"})
		if r := a.Replaced; r == nil || r.Ban || fmt.Sprint(r.Limits) != "[9/m]" || r.Key != ip || r.Until != nil || r.By != "Ann" {
			t.Errorf("the ban replaces %+v", r)
		}
		_, err := f.Do(t.Context(), raise("10/m", ip))
		f.refused(err, true, "lift the ban first")
		_, err = f.Do(t.Context(), Order{Kind: Ban, Rule: "login", Key: ip, For: time.Minute})
		f.refused(err, true, "for longer already, until 2")
		a = f.do(Order{Kind: Ban, Rule: "login", Key: ip})
		if r := a.Replaced; r == nil || !r.Ban || r.Until == nil || r.Note != "scan" {
			t.Errorf("the second ban replaces %+v", r)
		}
		_, err = f.Do(t.Context(), Order{Kind: Ban, Rule: "login", Key: ip, For: time.Minute})
		f.refused(err, true, "for longer already, without end")

		f.do(Order{Kind: Ban, Rule: "login", Key: "ip:198.51.*"})
		if a := f.do(raise("9/m", "ip:198.51.7.*")); a.Replaced != nil {
			t.Errorf("of a pattern within another, it replaces %+v", a.Replaced)
		}
		a = f.do(raise("9/m", "ip:198.51.100.1")) // the ban of the others stays
		if r := a.Replaced; r == nil || !r.Ban || r.Key != "ip:198.51.*" {
			t.Errorf("of a key that a pattern bans, it replaces %+v", r)
		}
		list, err := f.List(t.Context())
		if err != nil || list[0].Replaced == nil || list[0].Replaced.Key != "ip:198.51.*" {
			t.Errorf("the list has %+v, %v", list[0], err)
		}
	})
}

// TestRaiseIsMore: than the limits of the rule, at once or in the long run.
func TestRaiseIsMore(t *testing.T) {
	f := newInstance(t, nil)
	for text, ok := range map[string]bool{
		"10/h": true, "11/h": true, "10/h burst 20": true, "60/m sliding-window": true, "5/s burst 1": true, "1/h burst 50": true,
		"9/h": false, "1/m burst 5": true, "10/h burst 9": false, "10/d": false, "1/h sliding-log": false,
	} {
		_, err := f.Do(t.Context(), Order{Kind: Raise, Rule: "any", Key: "k", Limits: limits(t, text)})
		if ok && err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if !ok {
			f.refused(err, false, text+` allows less than the limits of rule "any", 10/h`)
		}
	}
	_, err := f.Do(t.Context(), Order{Kind: Raise, Rule: "login", Key: ip, Limits: limits(t, "50/m", "4/d")})
	f.refused(err, false, `the limits of rule "login", 5/m, 100/d fixed-window`)
}

// TestRaiseAgain: a raise clears what the key used under limits of another kind than the rule's.
func TestRaiseAgain(t *testing.T) {
	f := newInstance(t, nil)
	window := Order{Kind: Raise, Rule: "any", Key: "k", Limits: limits(t, "50/h fixed-window")}
	raise := f.do(window)
	f.use("any", "k", 7)
	f.undo(raise)
	f.do(window)
	f.want("any", "k", "50 of 50")
}

// TestIdleBans: of a rule that does not enforce, bans deny nothing.
func TestIdleBans(t *testing.T) {
	f := newInstance(t, nil)
	f.table.UseFile([]rules.Override{{Rule: "login", Key: "ip:192.0.2.7", Ban: true}})
	ban := func(rule, key string, want int) {
		t.Helper()
		if a := f.do(Order{Kind: Ban, Rule: rule, Key: key}); a.IdleBans != want {
			t.Errorf("%d bans of %s are idle, want %d", a.IdleBans, rule, want)
		}
	}
	mode := func(rule, mode string, want int) {
		t.Helper()
		if a := f.do(Order{Kind: Mode, Rule: rule, Mode: mode}); a.IdleBans != want {
			t.Errorf("%d bans of %s are idle in %s, want %d", a.IdleBans, rule, mode, want)
		}
	}
	ban("login", ip, 0)
	ban("login", "ip:192.0.3.*", 0)
	ban("any", "k", 0)
	ban("trial", "k", 1)
	mode("login", "shadow", 3)
	ban("login", "ip:192.0.2.2", 1)
	mode("login", ModeOfFile, 0)
	mode("trial", "enforce", 0)
	mode("trial", ModeOfFile, 1)
}
