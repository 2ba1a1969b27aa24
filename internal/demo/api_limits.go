package demo

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate/headgate"
)

// postLimits sets the limits that the body has, as text, and resets both lanes if it says so, as a
// step of the tour or a link does. It changes no limit if one is invalid or the store is
// unavailable.
func (d *Demo) postLimits(r *http.Request) (state, error) {
	var want struct {
		Left  *string `json:"left"`
		Right *string `json:"right"`
		Reset bool    `json:"reset"`
	}
	const like = `{"left": "1/s burst 10", "right": "10/10s fixed-window", "reset": true}`
	if err := readJSON(r, &want, like); err != nil {
		return state{}, err
	}
	var limits [2]*headgate.Limit
	for i, text := range []*string{want.Left, want.Right} {
		if text == nil {
			continue
		}
		limit, err := limitFromText(laneNames[i], *text)
		if err != nil {
			return state{}, err
		}
		limits[i] = &limit
	}
	return d.change(r.Context(), limits, want.Reset)
}

// limitFromText reads the text form of the limit of a lane.
func limitFromText(lane, text string) (headgate.Limit, error) {
	limit, err := headgate.ParseLimit(text)
	if err == nil {
		return limit.Named(""), nil
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		e.Field = "the " + lane + " " + e.Field
	}
	return limit, err
}

// change sets the limits that are not nil. It resets the key or peeks at it first, and only then
// changes a lane.
func (d *Demo) change(
	ctx context.Context, limits [2]*headgate.Limit, reset bool,
) (state, error) {
	var limiters [2]*headgate.Limiter
	for i, l := range d.lanes {
		limiters[i] = l.limiter
		if limits[i] != nil {
			next, err := headgate.NewLimiter(d.store, limits[i].Named(l.name))
			if err != nil {
				return state{}, err
			}
			limiters[i] = next
		}
	}
	for i := range limiters {
		if reset {
			if err := limiters[i].Reset(ctx, key); err != nil {
				return state{}, err
			}
		}
	}
	outcomes, err := d.snapshot(ctx, limiters)
	if err != nil {
		return state{}, err
	}
	for i, l := range d.lanes {
		if limits[i] != nil {
			if err := l.change(*limits[i], configOf(*limits[i])); err != nil {
				return state{}, err
			}
		}
		if reset {
			l.clear()
		}
	}
	return d.stateOf(outcomes), nil
}
