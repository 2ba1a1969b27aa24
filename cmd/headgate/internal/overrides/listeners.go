package overrides

import (
	"maps"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

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
