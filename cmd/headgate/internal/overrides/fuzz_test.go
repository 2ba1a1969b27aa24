package overrides

import (
	"testing"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// FuzzEntry: no entry of the store panics; one that is an override is one when it is kept again.
func FuzzEntry(f *testing.F) {
	for _, key := range []string{"ip:192.0.2.1", "\xff", "a*", "", " ", "header:sha256:00"} {
		for _, value := range []string{
			`{"ban":true}`, `{"limits":["5/m","9/h"],"until":"2030-01-01T00:00:00Z","note":"\ud800"}`, `{`,
			`{"limits":["x"]}`, `{"ban":true,"until":"0001-01-01T00:00:00Z"}`, `{"mode":"shadow"}`, `{"reset":true}`,
			`null`, `[]`, `{"ban":"yes"}`, "\xff",
		} {
			f.Add("login "+key, value)
		}
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		e, err := parse(name, value)
		if err != nil || !isOverride(name) {
			return
		}
		o, err := e.override(name)
		if err != nil {
			return
		}
		again, err := parse(name, encode(*o))
		if err != nil {
			t.Fatal(err)
		}
		kept, err := again.override(name)
		if err != nil || encode(*kept) != encode(*o) {
			t.Errorf("%q %q is kept as %q, %v", name, value, encode(*o), err)
		}
	})
}

// FuzzPut: an override that is accepted is in force for its key, and for those that its pattern
// matches; no text panics. The callers of Put check that there is such a rule.
func FuzzPut(f *testing.F) {
	for _, key := range []string{"ip:192.0.2.1", "\xff", "a*", "*", "**", "", "a*b*c", "all"} {
		f.Add(key, key)
		f.Add(key, "axbxc")
	}
	const rule = "login"
	f.Fuzz(func(t *testing.T, key, asked string) {
		table := NewMemory()
		until := time.Now().Add(time.Hour)
		if err := table.Put(t.Context(), rules.Override{Rule: rule, Key: key, Ban: true, Until: until}); err != nil {
			return
		}
		if o, found := table.Find(rule, key); !found || !o.Ban {
			t.Errorf("%q %q is not in force", rule, key)
		}
		_, _ = table.Find(rule, asked)
	})
}
