package overrides

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/eventually"
	"github.com/headgate/headgate/internal/redistest"
)

// follower notes what a table tells.
type follower struct {
	mu     sync.Mutex
	modes  map[string]rules.Mode
	resets []Reset
	told   int
}

func follow(table *Table) *follower {
	f := &follower{}
	table.Follow(func(modes map[string]rules.Mode) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.modes = modes
		f.told++
	}, func(r Reset) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resets = append(f.resets, r)
	})
	return f
}

func (f *follower) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.modes, f.resets)
}

func (f *follower) want(t *testing.T, want string) {
	t.Helper()
	eventually.Equal(t, "what it was told", f.state, want)
}

func shadowOf(rule string, span time.Duration) string {
	m := Mode{Rule: rule, Mode: rules.Shadow, At: time.Now(), By: "Ann", Note: "too tight"}
	if span > 0 {
		m.Until = m.At.Add(span)
	}
	return EncodeMode(m)
}

func TestModesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewMemory()
		running(t, table)
		f := follow(table)
		if err := table.Swap(t.Context(), ModeName("login"), "", shadowOf("login", time.Minute)); err != nil {
			t.Fatal(err)
		}
		if err := table.Swap(t.Context(), ModeName("api"), "", shadowOf("api", 2*time.Minute)); err != nil {
			t.Fatal(err)
		}
		for _, want := range []map[string]rules.Mode{
			{"login": rules.Shadow, "api": rules.Shadow}, {"api": rules.Shadow}, {},
		} {
			synctest.Wait()
			if got := f.state(); got != fmt.Sprint(want, " []") || len(table.Modes()) != len(want) {
				t.Errorf("in force are %s and %v, want %v", got, table.Modes(), want)
			}
			time.Sleep(time.Minute)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.told != 4 {
			t.Errorf("it was told %d times, want 4", f.told)
		}
	})
}

// TestSwap: a value is replaced only if nobody else has replaced it; an expired one is none.
func TestSwap(t *testing.T) {
	server := redistest.Start(t)
	for name, table := range map[string]*Table{
		"memory": NewMemory(), "redis": instance(t, open(t, "redis://"+server.Addr), nil),
	} {
		t.Run(name, func(t *testing.T) { swap(t, table) })
	}
}

func swap(t *testing.T, table *Table) {
	try := func(from, to string, want error) {
		t.Helper()
		if err := table.Swap(t.Context(), KeyName("login", "k"), from, to); !errors.Is(err, want) {
			t.Fatalf("Swap returned %v, want %v", err, want)
		}
	}
	value := func(o rules.Override) string {
		o.Rule, o.Key = "login", "k"
		text, err := Encode(o)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	first := value(rules.Override{Ban: true})
	raise := value(rules.Override{Limits: []headgate.Limit{limit(t, "9/m")}})
	try(raise, first, ErrChanged) // there is none
	try("", first, nil)
	try("", raise, ErrChanged)
	ban := value(rules.Override{Ban: true, Until: time.Now().Add(200 * time.Millisecond)})
	try(first, ban, nil)
	for end := time.Now().Add(time.Second); found(table, "k") == "ban" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	try("", raise, nil)  // there is one that expired, which is none
	try(raise, ban, nil) // to an expired one: to none
	try(ban, raise, nil) // from an expired one, which is none
	try(raise, "", nil)
	put(t, table, rules.Override{Rule: "other", Key: "k", Ban: true})
	if got := table.Stored(KeyName("login", "k")); got != "" {
		t.Fatalf("it keeps %s", got)
	}
	if err := table.Swap(t.Context(), ModeName("login"), "", shadowOf("login", 0)); err != nil {
		t.Fatal(err)
	}
	if m := table.Modes(); len(m) != 1 || m[0].Note != "too tight" || m[0].By != "Ann" || m[0].Mode != rules.Shadow {
		t.Fatalf("the modes are %+v", m)
	}
	if _, list := table.List(); len(list) != 1 {
		t.Errorf("a mode is among the overrides: %+v", list)
	}
}

// TestModesAndResetsAreNotCounted: only overrides have a maximum.
func TestModesAndResetsAreNotCounted(t *testing.T) {
	server := redistest.Start(t)
	for name, table := range map[string]*Table{
		"memory": NewMemory(), "redis": instance(t, open(t, "redis://"+server.Addr), nil),
	} {
		t.Run(name, func(t *testing.T) {
			table.max = 3
			f := follow(table)
			other := func() {
				for i := range 3 {
					rule := fmt.Sprint("r", i)
					if table.Stored(ModeName(rule)) == "" {
						if err := table.Swap(t.Context(), ModeName(rule), "", shadowOf(rule, 0)); err != nil {
							t.Fatal(err)
						}
						break
					}
				}
				if err := table.Announce(t.Context(), Reset{"login", "k"}); err != nil {
					t.Fatal(err)
				}
			}
			other()
			other()
			for i := range 3 {
				put(t, table, rules.Override{Rule: "login", Key: fmt.Sprint(i), Ban: true})
			}
			other()
			f.want(t, "map[r0:shadow r1:shadow r2:shadow] [{login k} {login k} {login k}]")
			if err := table.Put(t.Context(), rules.Override{Rule: "login", Key: "3", Ban: true}); err == nil {
				t.Error("a fourth override was put")
			}
		})
	}
}
