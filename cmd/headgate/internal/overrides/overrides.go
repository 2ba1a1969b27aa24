// Package overrides holds limits and bans that replace the limits of a rule for some keys.
//
// Overrides come from the file, and from the HTTP interface. The latter are kept in the store: in
// Redis all instances share them, and they survive a restart; in memory they end with the process,
// unless its caller keeps the entries.
// The store also has the modes of rules that were switched, and, for some seconds, resets of keys.
package overrides

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/rules"
	"github.com/headgate/headgate/internal/redisscript"
)

// The largest numbers of overrides that a table keeps.
const (
	Max         = 10_000
	MaxPatterns = 1_000 // with a wildcard: each is compared with each key of its rule
)

// Table finds the override of a key. It is safe for use by many goroutines.
type Table struct {
	file   atomic.Pointer[index]
	loaded *loaded // what was read from the store

	keeper  keeper
	max     int
	reading sync.Mutex // one refresh at a time
	version string     // of the news that were applied
	report  func(error)

	useModes  func(map[string]rules.Mode) // of Follow
	useReset  func(Reset)
	usedModes map[string]rules.Mode
}

// keeper stores overrides as fields and values.
type keeper interface {
	// news returns the changes since a version, and calls also if it is not nil. Only one call runs
	// at a time.
	news(ctx context.Context, version string, also Also) (news, error)

	// change applies c as one step.
	change(ctx context.Context, c change) (outcome, error)

	// keepLost keeps entries that were lost, for all instances; without any, it forgets them.
	// lost returns them.
	keepLost(ctx context.Context, l Lost) error
	lost(ctx context.Context) (Lost, error)
}

// news are the new values of fields; an empty value deletes the field.
type news struct {
	version string // after them
	fields  map[string]string
	all     bool // there are no other fields
}

// change puts or deletes one entry, and deletes those that have expired.
type change struct {
	field   string
	from    string        // the value that it must have; empty: none
	value   string        // empty: delete
	ttl     time.Duration // of the value; 0: without end
	max     int           // overrides, if one more is put; 0: any number
	expired []string      // fields and values in turn: deleted if they still have the value
}

// unread is the version of a table that has read nothing, or entries without a version.
const unread = "?"

// anyValue is the from of a change whatever there is. No value is this text.
const anyValue = "*"

type outcome int

const (
	conflict outcome = iota - 2
	full
	unchanged
	changed
)

// NewMemory returns a table that is kept in this process.
func NewMemory() *Table {
	return newTable(&memory{fields: map[string]string{}, fresh: map[string]string{}})
}

func newTable(k keeper) *Table {
	t := &Table{
		keeper: k, max: Max, version: unread,
		loaded: &loaded{fields: map[string]field{}, modes: map[string]Mode{}},
		report: func(error) {},
	}
	t.file.Store(newIndex(nil))
	return t
}

// UseFile replaces the overrides of the file.
func (t *Table) UseFile(list []rules.Override) { t.file.Store(newIndex(list)) }

// Find returns the override of key under rule. Those of the file come before those that were put.
// In each, the one for exactly this key comes first, then wildcards, the longest first.
func (t *Table) Find(rule, key string) (rules.Override, bool) {
	if o, ok := t.file.Load().find(rule, key); ok {
		return o, true
	}
	return t.loaded.find(rule, key)
}

// OfFile returns the override of the file that applies to key under rule. It precedes all overrides
// in the store.
func (t *Table) OfFile(rule, key string) (rules.Override, bool) {
	return t.file.Load().find(rule, key)
}

// List returns the overrides that have not expired: of the file, and those that were put.
func (t *Table) List() (file, put []rules.Override) {
	now := time.Now()
	return t.file.Load().valid(now), t.loaded.valid(now)
}

// Count counts what was put and is in force by its kind: limits, ban or mode.
func (t *Table) Count() map[string]int { return countKinds(t.loaded.inForceAt(time.Now(), nil)) }

// Put keeps o instead of the override of the same rule and key. The limits of o get the names of
// the rule. It returns a headgate.InvalidError if o or one more override is not accepted.
func (t *Table) Put(ctx context.Context, o rules.Override) error {
	value, err := Encode(o)
	if err != nil {
		return err
	}
	return t.put(ctx, KeyName(o.Rule, o.Key), anyValue, value)
}

// Delete deletes the override that was put for rule and key, and reports whether there was one.
func (t *Table) Delete(ctx context.Context, rule, key string) (bool, error) {
	got, err := t.keeper.change(ctx, change{field: KeyName(rule, key), from: anyValue})
	if err != nil {
		return false, redisscript.Explain("overrides: delete", err, nil)
	}
	_ = t.Refresh(ctx) // it is deleted: if that could not be read now, the next look reads it
	return got == changed, nil
}
