// Package overrides holds limits and bans that replace the limits of a rule for some keys.
//
// Overrides come from the file, and from the HTTP interface. The latter are kept in the store: in
// Redis all instances share them, and they survive a restart; in memory they end with the process.
// Beside them are kept the modes of rules that were switched, and, for some seconds, resets of keys.
package overrides

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/service/internal/rules"
)

// The largest numbers of overrides that a table keeps.
const (
	Max         = 10_000
	MaxPatterns = 1_000 // with a wildcard: each is compared with each key of its rule
)

// Interval is how often a table in Redis looks for changes of other instances.
const Interval = 500 * time.Millisecond

// Table finds the override of a key. It is safe for use by many goroutines.
type Table struct {
	file atomic.Pointer[index]
	kept atomic.Pointer[kept]

	keeper  keeper
	max     int
	reading sync.Mutex // one refresh at a time
	version string     // of kept
	report  func(error)

	stop func() // ends the goroutine, and waits for it

	follow followers
}

// keeper stores overrides as fields and values.
type keeper interface {
	// load returns the fields, unless their version is the given one.
	load(ctx context.Context, version string) (fields map[string]string, now string, err error)

	// change applies c as one step.
	change(ctx context.Context, c change) (outcome, error)
}

// change puts or deletes one entry, and deletes those that have expired.
type change struct {
	field   string
	from    string        // the value that it must have; empty: none
	value   string        // empty: delete
	ttl     time.Duration // of the value; 0: without end
	max     int           // fields
	expired []string      // fields and values in turn: deleted if they still have the value
}

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
func NewMemory() *Table { return newTable(&memory{fields: map[string]string{}}) }

func newTable(k keeper) *Table {
	t := &Table{keeper: k, max: Max, report: func(error) {}, stop: func() {}}
	t.file.Store(newIndex(nil))
	t.kept.Store(newKept(nil, nil, t.report))
	return t
}

// UseFile replaces the overrides of the file. The first that matches a key counts.
func (t *Table) UseFile(list []rules.Override) { t.file.Store(newIndex(list)) }

// Find returns the override of key under rule. Those of the file come first, in their order; then
// the one that was put for exactly this key, then wildcards, the longest first.
func (t *Table) Find(rule, key string) (rules.Override, bool) {
	if o, ok := t.file.Load().find(rule, key); ok {
		return o, true
	}
	return t.kept.Load().find(rule, key)
}

// List returns the overrides that have not expired: of the file, and those that were put.
func (t *Table) List() (file, put []rules.Override) {
	now := time.Now()
	return t.file.Load().valid(now), t.kept.Load().valid(now)
}

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
		return false, fmt.Errorf("overrides: delete: %w", err)
	}
	return got == changed, t.Refresh(ctx)
}

// Refresh reads the kept overrides now, if they have changed.
func (t *Table) Refresh(ctx context.Context) error {
	t.reading.Lock()
	defer t.reading.Unlock()
	fields, version, err := t.keeper.load(ctx, t.version)
	if err != nil {
		return fmt.Errorf("overrides: read: %w", err)
	}
	if version == t.version {
		return nil
	}
	t.kept.Store(newKept(t.kept.Load(), fields, t.report))
	t.version = version
	t.tell()
	return nil
}

// Close ends the goroutine of a table in Redis.
func (t *Table) Close() error {
	t.stop()
	t.reading.Lock()
	defer t.reading.Unlock()
	t.follow.close()
	return nil
}
