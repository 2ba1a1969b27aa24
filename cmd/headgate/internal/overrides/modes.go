package overrides

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Mode is the mode that a rule has instead of the one in the file.
type Mode struct {
	Rule      string
	Mode      rules.Mode
	At, Until time.Time // zero Until: without end
	Note      string
	By        string
}

// ModeName is the name of the mode of a rule in the store.
func ModeName(rule string) string { return rule }

// EncodeMode returns the value of m in the store.
func EncodeMode(m Mode) string {
	e := entry{
		Rule: m.Rule, Mode: m.Mode.String(), At: m.At.UTC(), Until: m.Until.UTC(),
		Note: m.Note, By: m.By,
	}
	return e.text()
}

// mode returns the mode that e is.
func (e *entry) mode(name string) (Mode, error) {
	mode, err := rules.ParseMode(e.Mode)
	if err != nil || e.Mode == "" || e.Rule != name {
		return Mode{}, fmt.Errorf(
			"overrides: entry %q in the store: mode %q of rule %q is not valid",
			name, e.Mode, e.Rule)
	}
	return Mode{Rule: e.Rule, Mode: mode, At: e.At, Until: e.Until, Note: e.Note, By: e.By}, nil
}

// Modes lists the modes in force, by the names of rules.
func (t *Table) Modes() []Mode {
	return t.loaded.inForce(time.Now())
}
