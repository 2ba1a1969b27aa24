// Package overrides holds limits and bans that replace the limits of a rule for some keys.
//
// Overrides come from the file, and from the HTTP interface. The latter are kept in the store: in
// Redis all instances share them, and they survive a restart; in memory they end with the process.
package overrides

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
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
	kept atomic.Pointer[index]

	keeper  keeper
	max     int
	reading sync.Mutex // one refresh at a time
	version string     // of kept
	report  func(error)

	stop func() // ends the goroutine, and waits for it
}

// keeper stores overrides as fields and values.
type keeper interface {
	// load returns the fields, unless their version is the given one.
	load(ctx context.Context, version string) (fields map[string]string, now string, err error)

	// change applies c as one step.
	change(ctx context.Context, c change) (outcome, error)
}

// change puts or deletes one override, and deletes those that have expired.
type change struct {
	field   string
	value   string        // empty: delete
	ttl     time.Duration // of the value; 0: without end
	max     int           // fields
	expired []string      // fields and values in turn: deleted if they still have the value
}

type outcome int

const (
	full outcome = iota - 1
	unchanged
	changed
)

// NewMemory returns a table that is kept in this process.
func NewMemory() *Table { return newTable(&memory{fields: map[string]string{}}) }

func newTable(k keeper) *Table {
	t := &Table{keeper: k, max: Max, report: func(error) {}, stop: func() {}}
	t.file.Store(newIndex(nil))
	t.kept.Store(newIndex(nil))
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
	now := time.Now()
	if err := validate(&o, now); err != nil {
		return err
	}
	kept := t.kept.Load()
	if isPattern(o.Key) && !kept.has(o.Rule, o.Key) && kept.patterns(now) >= MaxPatterns {
		return &headgate.InvalidError{Field: "override", Value: "above the maximum of keys with *",
			Want: fmt.Sprintf("at most %d of them; delete one first", MaxPatterns)}
	}
	c := change{field: field(o.Rule, o.Key), value: encode(o), max: t.max}
	c.expired = kept.expired(now)
	if !o.Until.IsZero() {
		c.ttl = o.Until.Sub(now)
	}
	got, err := t.keeper.change(ctx, c)
	if err != nil {
		return fmt.Errorf("overrides: put: %w", err)
	}
	if got == full {
		return &headgate.InvalidError{Field: "override", Value: "above the maximum",
			Want: fmt.Sprintf("at most %d; delete one first", t.max)}
	}
	return t.Refresh(ctx)
}

// Delete deletes the override that was put for rule and key, and reports whether there was one.
func (t *Table) Delete(ctx context.Context, rule, key string) (bool, error) {
	got, err := t.keeper.change(ctx, change{field: field(rule, key)})
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
	list := make([]rules.Override, 0, len(fields))
	for name, value := range fields {
		o, err := decode(name, value)
		if err != nil {
			t.report(err) // one bad entry must not hide the others
			continue
		}
		list = append(list, o)
	}
	sortBySpecificity(list)
	t.kept.Store(newIndex(list))
	t.version = version
	return nil
}

// Close ends the goroutine of a table in Redis.
func (t *Table) Close() error {
	t.stop()
	return nil
}
