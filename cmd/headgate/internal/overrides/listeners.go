package overrides

import (
	"maps"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
)

// Follow calls modes now and after every change of a mode, and resets after every reset on any
// instance. The functions are called one at a time.
func (t *Table) Follow(modes func(map[string]rules.Mode), resets func(Reset)) {
	t.reading.Lock()
	defer t.reading.Unlock()
	t.useModes, t.useReset = modes, resets
	t.tell(nil)
}

// tell calls the functions of [Table.Follow] with what has changed. t.reading must be held.
func (t *Table) tell(resets []Reset) {
	if t.useModes == nil {
		return
	}
	list := t.Modes()
	modes := make(map[string]rules.Mode, len(list))
	for _, m := range list {
		modes[m.Rule] = m.Mode
	}
	if !maps.Equal(modes, t.usedModes) {
		t.useModes(modes)
		t.usedModes = modes // last: after a panic, it is called again
	}
	for _, r := range resets {
		t.useReset(r)
	}
}
