package actions

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// PutBack puts back the overrides and modes that the store has lost, and lists that as an action.
// Its note has their numbers, also if the store fails before all are back.
func (x *Executor) PutBack(ctx context.Context, by string) (Action, error) {
	ctx = context.WithoutCancel(ctx) // as in Do
	if err := x.o.Overrides.Refresh(ctx); err != nil {
		return Action{}, err
	}
	done, err := x.o.Overrides.PutBack(ctx)
	if len(done.Values) == 0 {
		if err == nil {
			err = conflict("nothing is lost, or it is in force again")
		}
		return Action{}, err
	}
	n := done.Count()
	r := record{Action: Action{
		ID: uuid.Must(uuid.NewV7()).String(), At: time.Now().UnixMilli(), By: by, Kind: Restore,
		Limits: []string{},
		Note: fmt.Sprintf("bans: %d, limits of keys: %d, modes: %d",
			n["ban"], n["limits"], n["mode"]),
	}}
	if _, noted := x.log.swap(ctx, r.ID, "", r.text()); err == nil {
		err = noted
	}
	return x.shown(&r), err
}
