package overrides

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
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
		Rule: m.Rule, Mode: m.Mode.String(), At: m.At.UTC(), Until: m.Until.UTC(), Note: m.Note, By: m.By,
	}
	return e.text()
}

// mode returns the mode that e is.
func (e *entry) mode(name string) (Mode, error) {
	mode, err := rules.ParseMode(e.Mode)
	if err != nil || e.Mode == "" || e.Rule != name {
		return Mode{}, fmt.Errorf("overrides: entry %q in the store: mode %q of rule %q is not valid",
			name, e.Mode, e.Rule)
	}
	return Mode{Rule: e.Rule, Mode: mode, At: e.At, Until: e.Until, Note: e.Note, By: e.By}, nil
}

// Modes lists the modes in force, by the names of rules.
func (t *Table) Modes() []Mode {
	return t.kept.inForce(time.Now())
}

// Reset is a key that was reset, so that instances that have cached its denials forget them.
type Reset struct{ Rule, Key string }

const (
	resetMark = "@reset " // begins the names of resets; no name of a rule does
	resetTTL  = 10 * time.Second
)

// Announce reports the reset of a key to all instances.
func (t *Table) Announce(ctx context.Context, r Reset) error {
	e := entry{Rule: r.Rule, Key: r.Key, Reset: true, Until: time.Now().Add(resetTTL).UTC()}
	return t.put(ctx, resetMark+rand.Text(), "", e.text())
}

// followers are told of what the store holds beside overrides.
type followers struct {
	modes  func(map[string]rules.Mode)
	resets func(Reset)
	told   map[string]rules.Mode
}

// Follow calls modes now and after every change of a mode, and resets after every reset on any
// instance. The functions are called one at a time.
func (t *Table) Follow(modes func(map[string]rules.Mode), resets func(Reset)) {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.follow.modes, t.follow.resets = modes, resets
	t.tell(nil)
}

// tell calls the followers with what has changed. t.reading must be held.
func (t *Table) tell(resets []Reset) {
	f := &t.follow
	if f.modes == nil {
		return
	}
	list := t.Modes()
	modes := make(map[string]rules.Mode, len(list))
	for _, m := range list {
		modes[m.Rule] = m.Mode
	}
	if !maps.Equal(modes, f.told) {
		f.modes(modes)
		f.told = modes // last: after a panic, it is called again
	}
	for _, r := range resets {
		f.resets(r)
	}
}
