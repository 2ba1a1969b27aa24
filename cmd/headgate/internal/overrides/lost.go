package overrides

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// LostError is reported when the store has lost entries that are in force, as a Redis that starts
// empty does. They end then: another instance, or an operator, may have deleted them meanwhile.
type LostError map[string]int

// Error returns the numbers.
func (e LostError) Error() string {
	return fmt.Sprintf("the store has lost what was in force: %d limits of keys, %d bans, "+
		"%d modes of rules", e["limits"], e["ban"], e["mode"])
}

// lostFor is for how long lost entries can be put back.
const lostFor = time.Hour

// Lost is what the store has lost, and what is not in force again.
type Lost struct {
	At     time.Time         // of the last loss
	Values map[string]string // by the names of entries
}

// Count counts what was lost by its kind, as [Table.Count] does.
func (l Lost) Count() map[string]int {
	fields := map[string]field{}
	for name, value := range l.Values {
		e, _ := parse(name, value) // it was parsed before
		fields[name] = field{kind: e.kind()}
	}
	return countKinds(fields)
}

func newLost(fields map[string]field) Lost {
	l := Lost{At: time.Now(), Values: map[string]string{}}
	for name, f := range fields {
		l.Values[name] = f.value
	}
	return l
}

// Lost returns what an instance has seen the store lose in the last hour, unless it has ended, or
// is in force again.
func (t *Table) Lost(ctx context.Context) (Lost, error) {
	l, err := t.keeper.lost(ctx)
	maps.DeleteFunc(l.Values, func(name, value string) bool {
		return Live(value) == "" || t.Stored(name) != ""
	})
	return l, err
}

// PutBack puts back what [Table.Lost] returns, each entry with its author, note and end. What was
// put meanwhile stays.
func (t *Table) PutBack(ctx context.Context) (Lost, error) {
	lost, err := t.Lost(ctx)
	if err != nil {
		return Lost{}, err
	}
	done := Lost{At: lost.At, Values: map[string]string{}}
	for name, value := range lost.Values {
		err := t.Swap(ctx, name, "", value)
		switch {
		case err == nil:
			done.Values[name] = value
		case !errors.Is(err, ErrChanged):
			return done, err
		}
	}
	_ = t.keeper.keepLost(ctx, Lost{}) // else it is forgotten later
	return done, nil
}
