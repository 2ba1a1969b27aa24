package actions

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/cmd/headgate/internal/overrides"
)

// Undo reverts the action id.
func (x *Executor) Undo(ctx context.Context, id, by string) (Action, error) {
	if err := x.o.Overrides.Refresh(ctx); err != nil {
		return Action{}, err
	}
	records, err := x.records(ctx)
	if err != nil {
		return Action{}, err
	}
	i := slices.IndexFunc(records, func(r record) bool { return r.ID == id })
	if i < 0 {
		return Action{}, ErrNoAction
	}
	r := &records[i]
	if err := x.mayUndo(r); err != nil {
		return Action{}, err
	}
	undone := *r
	undone.Undone = &Undone{At: time.Now().UnixMilli(), By: by}
	// The note comes first here, too: of two who undo the same action, one is refused.
	ctx = context.WithoutCancel(ctx) // as in Do
	noted, err := x.log.swap(ctx, id, r.kept, undone.text())
	if err == nil {
		if !noted {
			return Action{}, errUndone
		}
		err = x.revert(ctx, r)
	}
	if err != nil { // the note may have been written
		_, _ = x.log.swap(ctx, id, undone.text(), r.kept) // best effort
		return Action{}, err
	}
	return x.shown(&undone), nil
}

// ErrNoAction is returned for the id of an action that is not in the list.
var ErrNoAction = errors.New("actions: the action does not exist")

var errUndone = conflict("the action was already undone")

// mayUndo returns an error if r cannot be undone, or if what it did was changed since.
func (x *Executor) mayUndo(r *record) error {
	switch {
	case r.Kind == Reset || r.Kind == Restore:
		return refused("a %s cannot be undone", r.Kind)
	case r.Undone != nil:
		return errUndone
	case x.o.Overrides.Stored(r.name()) != overrides.Live(r.To):
		return conflict("%s was changed after this action: undo the later change first",
			r.subject())
	}
	return nil
}

func (r *record) subject() string {
	if r.Kind == Mode {
		return "the mode of rule " + strconv.Quote(r.Rule)
	}
	return "the key " + strconv.Quote(r.Key) + " of rule " + strconv.Quote(r.Rule)
}

// revert restores what r has replaced.
func (x *Executor) revert(ctx context.Context, r *record) error {
	if r.From == r.To {
		return nil
	}
	err := x.swap(ctx, r.name(), r.To, r.From)
	if errors.Is(err, overrides.ErrChanged) {
		return conflict("%s was changed at the same time: check it, and try again", r.subject())
	}
	return err
}

// undoable reports whether an undo of r would change anything, and r is still in force.
func (x *Executor) undoable(r *record) bool {
	to := overrides.Live(r.To)
	return r.Undone == nil && x.o.Overrides.Stored(r.name()) == to && overrides.Live(r.From) != to
}
