package demo

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate/headgate"
)

// postLimit changes the limit of a lane. It changes nothing if the limit is invalid or the store is
// unavailable.
func (d *Demo) postLimit(side int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var s settings
		const like = `{"algorithm": "token-bucket", "capacity": 10, "refill": 5, "period": "1s"}`
		if err := readJSON(r, &s, like); err != nil {
			fail(w, err)
			return
		}
		limit, err := s.limit()
		if err != nil {
			fail(w, err)
			return
		}
		ctx, stop := context.WithTimeout(r.Context(), patience)
		defer stop()
		changed, err := d.change(ctx, side, limit)
		if err != nil {
			fail(w, err)
			return
		}
		answer(w, changed)
	}
}

// change peeks at limit, and only then sets it.
func (d *Demo) change(ctx context.Context, side int, limit headgate.Limit) (state, error) {
	l := d.lanes[side]
	next, err := headgate.NewLimiter(d.clock.store, limit.Named(l.name))
	if err != nil {
		return state{}, err
	}
	limiters := [2]*headgate.Limiter{d.lanes[0].limiter, d.lanes[1].limiter}
	limiters[side] = next
	outcomes, err := d.snapshot(ctx, limiters[:]...)
	if err != nil {
		return state{}, err
	}
	if err := l.change(limit, configOf(limit)); err != nil {
		return state{}, err
	}
	return d.stateOf(outcomes), nil
}

// postLimits sets both limits, given as text, and resets both lanes: an example, a step of the tour
// or a link begins with it. It changes nothing if a limit is invalid or the store is unavailable.
func (d *Demo) postLimits(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Left  string `json:"left"`
		Right string `json:"right"`
	}
	const like = `{"left": "1/s burst 10", "right": "10/10s fixed-window"}`
	if err := readJSON(r, &want, like); err != nil {
		fail(w, err)
		return
	}
	var limits [2]headgate.Limit
	for i, text := range []string{want.Left, want.Right} {
		limit, err := limitFromText(laneNames[i], text)
		if err != nil {
			fail(w, err)
			return
		}
		limits[i] = limit
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	if err := d.restart(ctx, limits); err != nil {
		fail(w, err)
		return
	}
	d.answerState(ctx, w)
}

// limitFromText reads the text form of the limit of a lane.
func limitFromText(lane, text string) (headgate.Limit, error) {
	limit, err := headgate.ParseLimit(text)
	if err == nil {
		return limit.Named(""), nil
	}
	if e, ok := errors.AsType[*headgate.InvalidError](err); ok {
		field := "the " + lane + " " + e.Field
		err = &headgate.InvalidError{Field: field, Value: e.Value, Want: e.Want}
	}
	return limit, err
}

// restart resets the key under the new limits, and only then sets them.
func (d *Demo) restart(ctx context.Context, limits [2]headgate.Limit) error {
	for i, l := range d.lanes {
		next, err := headgate.NewLimiter(d.clock.store, limits[i].Named(l.name))
		if err != nil {
			return err
		}
		if err := d.inSlot(ctx, func() error { return next.Reset(ctx, key) }); err != nil {
			return err
		}
	}
	for i, l := range d.lanes {
		if err := l.change(limits[i], configOf(limits[i])); err != nil {
			return err
		}
		l.clear()
	}
	return nil
}
