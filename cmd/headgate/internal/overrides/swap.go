package overrides

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/cmd/headgate/internal/wildcard"
	"github.com/headgate/headgate/internal/redisscript"
)

// ErrChanged is returned by [Table.Swap] if the stored entry is not the expected one.
var ErrChanged = errors.New("overrides: the entry was changed at the same time")

// Stored returns the value in force under a name of [KeyName] or [ModeName]; empty: none.
func (t *Table) Stored(name string) string { return live(name, t.loaded.value(name)) }

// live returns value, or nothing if it has expired.
func live(name, value string) string {
	if value == "" {
		return ""
	}
	e, err := parse(name, value)
	if err == nil && !e.Until.IsZero() && !time.Now().Before(e.Until) {
		return ""
	}
	return value
}

// Live returns a value of [Table.Stored], or nothing if it has expired since.
func Live(value string) string { return live("", value) }

// Swap replaces the value from by to under name. An empty from or to means no value. If the store
// holds another value than from, it changes nothing and returns ErrChanged. A value that has
// expired counts as none.
func (t *Table) Swap(ctx context.Context, name, from, to string) error {
	to = live(name, to)
	err := t.put(ctx, name, from, to)
	if !errors.Is(err, ErrChanged) {
		return err
	}
	now := t.loaded.value(name) // put has read it again
	if now == from || live(name, now) != live(name, from) {
		return err
	}
	return t.put(ctx, name, now, to) // they differ in what has expired
}

// put changes an entry from one value to another.
func (t *Table) put(ctx context.Context, name, from, to string) error {
	now := time.Now()
	c := change{field: name, from: from, value: to, expired: t.loaded.sweep(now, now, t.max)}
	if isOverride(name) {
		c.max = t.max
	}
	if to != "" {
		e, err := parse(name, to)
		if err != nil {
			return err
		}
		if err := t.loaded.checkPattern(name, &e, now); err != nil {
			return err
		}
		if !e.Until.IsZero() {
			c.ttl = e.Until.Sub(now)
		}
	}
	got, err := t.keeper.change(ctx, c)
	switch {
	case err != nil:
		return redisscript.Explain("overrides: put", err, nil)
	case got == full:
		return &headgate.InvalidError{Field: "override", Value: "above the maximum",
			Want: fmt.Sprintf("at most %d; delete one first", t.max)}
	}
	err = t.Refresh(ctx)
	if got != conflict {
		return nil // it is kept: if it could not be read now, the next look reads it
	}
	if err != nil {
		return err
	}
	return ErrChanged
}

// checkPattern reports that there are too many overrides with a wildcard for one more.
func (l *loaded) checkPattern(name string, e *entry, now time.Time) error {
	if isOverride(name) && wildcard.Has(e.Key) && l.value(name) == "" &&
		len(l.validPatterns(now)) >= MaxPatterns {
		return &headgate.InvalidError{Field: "override", Value: "above the maximum of keys with *",
			Want: fmt.Sprintf("at most %d of them; delete one first", MaxPatterns)}
	}
	return nil
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
