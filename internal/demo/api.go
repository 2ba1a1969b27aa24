package demo

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/gocode"
)

const (
	// maxRequests bounds one batch.
	maxRequests = 10_000

	// maxAhead is how long before its time a batch may be sent.
	maxAhead = 5 * time.Second
)

// state is the data of the page. Times are in milliseconds.
type state struct {
	Store string       `json:"store"`
	Now   float64      `json:"now"` // by the clock of the store
	Lanes [2]laneState `json:"lanes"`
}

// laneState is the state of a lane.
type laneState struct {
	At        float64 `json:"at"` // when it was so, by the clock of the store
	Name      string  `json:"name"`
	Limit     string  `json:"limit"` // as text
	Go        string  `json:"go"`    // as code
	Algorithm string  `json:"algorithm"`
	Capacity  int64   `json:"capacity"`
	Refill    int64   `json:"refill"`
	Period    float64 `json:"period"`
	Remaining int64   `json:"remaining"`
	Reset     float64 `json:"reset"`
	Allowed   int64   `json:"allowed"` // since the last reset
	Denied    int64   `json:"denied"`
	Most      int64   `json:"most"`  // granted in any period, since the limit or the reset
	Bound     int64   `json:"bound"` // of that
	Fields    []field `json:"fields"`
	Bins      []bin   `json:"bins"` // the last seconds
}

// batchAnswer is the result of a batch, and the state after it.
type batchAnswer struct {
	At    float64      `json:"at"`  // when it began, by the clock of the store
	Cut   bool         `json:"cut"` // the store did not decide all in time
	Lanes [2]laneBatch `json:"lanes"`
	State *state       `json:"state"` // null if the store is unavailable
}

// laneBatch is the result of a batch in one lane.
type laneBatch struct {
	Allowed int `json:"allowed"`
	Denied  int `json:"denied"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func epoch(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

func (d *Demo) getState(r *http.Request) (state, error) { return d.state(r.Context()) }

func (d *Demo) state(ctx context.Context) (state, error) {
	outcomes, err := d.snapshot(ctx, [2]*headgate.Limiter{d.lanes[0].limiter, d.lanes[1].limiter})
	if err != nil {
		return state{}, err
	}
	return d.stateOf(outcomes), nil
}

// snapshot requests the time of the store and peeks at the limiters.
func (d *Demo) snapshot(
	ctx context.Context, limiters [2]*headgate.Limiter,
) (outcomes [2]outcome, err error) {
	d.clock.adjust(ctx)
	for i, limiter := range limiters {
		if outcomes[i], err = peek(ctx, limiter); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// stateOf returns the state for the page.
func (d *Demo) stateOf(outcomes [2]outcome) state {
	s := state{Store: d.options.Store}
	for i, l := range d.lanes {
		o := outcomes[i]
		s.Lanes[i] = l.state(o.decision, d.clock.at(middle(o.from, o.to)))
	}
	s.Now = epoch(d.clock.at(time.Now()))
	return s
}

// state returns the state at a time of the store at which peeked was the decision.
func (l *lane) state(peeked headgate.Decision, at time.Time) laneState {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trace.see(at, l.limit, peeked)
	return laneState{
		At: epoch(at), Name: l.name,
		Limit: l.limit.String(), Go: gocode.Limit(l.limit),
		Algorithm: l.limit.Algorithm().String(),
		Capacity:  l.limit.Capacity(), Refill: l.limit.Refill(),
		Period:    milliseconds(l.limit.Period()),
		Remaining: peeked.Remaining, Reset: milliseconds(peeked.ResetAfter),
		Allowed: l.trace.allowed, Denied: l.trace.denied, Bins: l.trace.sorted(),
		Most: l.largest.found, Bound: l.largest.bound, Fields: l.fields,
	}
}

// postRequests sends requests through both lanes, now or at a time soon.
func (d *Demo) postRequests(r *http.Request) (batchAnswer, error) {
	var want struct {
		Requests int     `json:"requests"`
		At       float64 `json:"at"` // by the clock of the store; now if it has passed
	}
	if err := readJSON(r, &want, `{"requests": 10}`); err != nil {
		return batchAnswer{}, err
	}
	if want.Requests < 1 || want.Requests > maxRequests {
		return batchAnswer{}, &headgate.InvalidError{Field: "requests",
			Value: strconv.Itoa(want.Requests), Want: "1 to " + strconv.Itoa(maxRequests)}
	}
	if err := d.await(r.Context(), want.At); err != nil {
		return batchAnswer{}, err
	}
	return d.batch(r.Context(), want.Requests)
}

// await returns at a time of the store's clock, or now if that has passed.
func (d *Demo) await(ctx context.Context, at float64) error {
	if at <= 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, maxAhead+patience)
	defer stop()
	d.clock.adjust(ctx)
	rest := at - epoch(d.clock.at(time.Now()))
	if rest <= 0 {
		return nil
	}
	if rest > milliseconds(maxAhead) {
		return &headgate.InvalidError{Field: "at", Value: strconv.FormatFloat(at, 'f', -1, 64),
			Want: "a time of at most " + maxAhead.String() + " ahead, in milliseconds since 1970"}
	}
	select {
	case <-time.After(time.Duration(rest * float64(time.Millisecond))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// batch sends n requests. If the store fails, it returns those that were decided before.
func (d *Demo) batch(ctx context.Context, n int) (batchAnswer, error) {
	begun := time.Now()
	done, err := d.decide(ctx, n)
	a := batchAnswer{Cut: err != nil}
	decided := 0
	for i, outcomes := range done {
		lane := &a.Lanes[i]
		for _, o := range outcomes {
			if o.decision.Allowed() {
				lane.Allowed++
			}
		}
		lane.Denied = len(outcomes) - lane.Allowed
		decided += len(outcomes)
	}
	if decided == 0 {
		return batchAnswer{}, err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if s, err := d.state(ctx); err == nil {
		a.State = &s
	}
	a.At = epoch(d.clock.at(begun))
	return a, nil
}
