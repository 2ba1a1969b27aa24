package overrides

import (
	"context"
	"crypto/rand"
	"time"
)

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
