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

	// maxTurns bounds the list of outcomes. A longer one is too fine to see.
	maxTurns = 400
)

// state is the data of the page. Times are in milliseconds.
type state struct {
	Store string       `json:"store"`
	Now   float64      `json:"now"` // by the clock of the store
	Lanes [2]laneState `json:"lanes"`
}

// laneState is the state of a lane.
type laneState struct {
	At        float64  `json:"at"` // when it was so, by the clock of the store
	Name      string   `json:"name"`
	Limit     string   `json:"limit"` // as text
	Go        string   `json:"go"`    // as code
	Settings  settings `json:"settings"`
	Capacity  int64    `json:"capacity"`
	Refill    int64    `json:"refill"`
	Period    float64  `json:"period"`
	Remaining int64    `json:"remaining"`
	Reset     float64  `json:"reset"`
	Most      int64    `json:"most"`  // granted in any period, since the limit or the reset
	Bound     int64    `json:"bound"` // of that
	Fields    []field  `json:"fields"`
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

	// Turns are the lengths of the runs of equal outcomes, in order: first allowed, then
	// denied, and so on. Empty if there are too many to see.
	Turns []int `json:"turns"`
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func epoch(t time.Time) float64 { return float64(t.UnixMicro()) / 1000 }

func (d *Demo) getState(w http.ResponseWriter, r *http.Request) {
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	d.answerState(ctx, w)
}

func (d *Demo) answerState(ctx context.Context, w http.ResponseWriter) {
	s, err := d.state(ctx)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, s)
}

func (d *Demo) state(ctx context.Context) (state, error) {
	outcomes, err := d.snapshot(ctx, d.lanes[0].limiter, d.lanes[1].limiter)
	if err != nil {
		return state{}, err
	}
	return d.stateOf(outcomes), nil
}

// snapshot returns the time of the store and peeks at the limiters.
func (d *Demo) snapshot(ctx context.Context, limiters ...*headgate.Limiter) (outcomes [2]outcome, err error) {
	if err := d.clock.adjust(ctx); err != nil {
		return outcomes, err
	}
	for i, limiter := range limiters {
		err := d.inSlot(ctx, func() (err error) {
			outcomes[i], err = peek(ctx, limiter)
			return err
		})
		if err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// stateOf returns the state for the page.
func (d *Demo) stateOf(outcomes [2]outcome) state {
	s := state{Store: d.options.Store}
	for i, l := range d.lanes {
		s.Lanes[i] = l.state(outcomes[i].decision)
		s.Lanes[i].At = epoch(d.clock.at(middle(outcomes[i].from, outcomes[i].to)))
	}
	s.Now = epoch(d.clock.at(time.Now()))
	return s
}

func (l *lane) state(peeked headgate.Decision) laneState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return laneState{
		Name: l.name, Limit: l.limit.String(), Go: gocode.Limit(l.limit), Settings: settingsOf(l.limit),
		Capacity: l.limit.Capacity(), Refill: l.limit.Refill(), Period: milliseconds(l.limit.Period()),
		Remaining: peeked.Remaining, Reset: milliseconds(peeked.ResetAfter),
		Most: l.most.found, Bound: l.most.bound, Fields: l.fields,
	}
}

// postRequests sends requests through both lanes, now or at a time soon.
func (d *Demo) postRequests(w http.ResponseWriter, r *http.Request) {
	var want struct {
		Requests int     `json:"requests"`
		At       float64 `json:"at"` // by the clock of the store; now if it has passed
	}
	if err := readJSON(r, &want, `{"requests": 10}`); err != nil {
		fail(w, err)
		return
	}
	if want.Requests < 1 || want.Requests > maxRequests {
		fail(w, &headgate.InvalidError{Field: "requests", Value: strconv.Itoa(want.Requests), Want: "1 to " + strconv.Itoa(maxRequests)})
		return
	}
	if err := d.await(r.Context(), want.At); err != nil {
		fail(w, err)
		return
	}
	a, err := d.batch(r.Context(), want.Requests)
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, a)
}

// await returns at a time of the store's clock, or now if that has passed.
func (d *Demo) await(ctx context.Context, at float64) error {
	if at <= 0 {
		return nil
	}
	ctx, stop := context.WithTimeout(ctx, maxAhead+patience)
	defer stop()
	if err := d.clock.adjust(ctx); err != nil {
		return err
	}
	rest := at - epoch(d.clock.at(time.Now()))
	if rest <= 0 {
		return nil
	}
	if rest > milliseconds(maxAhead) {
		return &headgate.InvalidError{Field: "at", Value: strconv.FormatFloat(at, 'f', -1, 64), Want: "a time of at most " + maxAhead.String() + " ahead, in milliseconds since 1970"}
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
		a.Lanes[i] = summed(outcomes)
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

// summed counts outcomes, and keeps their order if there are few enough.
func summed(outcomes []outcome) laneBatch {
	b := laneBatch{Turns: []int{0}}
	allowing := true
	for _, o := range outcomes {
		allowed := o.decision.Allowed()
		if allowed {
			b.Allowed++
		}
		if allowed != allowing && len(b.Turns) <= maxTurns {
			b.Turns = append(b.Turns, 0)
		}
		allowing = allowed
		b.Turns[len(b.Turns)-1]++
	}
	b.Denied = len(outcomes) - b.Allowed
	if len(b.Turns) > maxTurns {
		b.Turns = []int{}
	}
	return b
}

func (d *Demo) postReset(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		if err := readJSON(r, &struct{}{}, "{}"); err != nil {
			fail(w, err)
			return
		}
	}
	ctx, stop := context.WithTimeout(r.Context(), patience)
	defer stop()
	for _, l := range d.lanes {
		if err := d.inSlot(ctx, func() error { return l.reset(ctx) }); err != nil {
			fail(w, err)
			return
		}
	}
	d.answerState(ctx, w)
}

// postLimit changes the limit of a lane. It changes nothing if the limit is invalid or the store is
// unavailable.
func (d *Demo) postLimit(side int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var s settings
		if err := readJSON(r, &s, `{"algorithm": "token-bucket", "capacity": 10, "refill": 5, "period": "1s"}`); err != nil {
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
