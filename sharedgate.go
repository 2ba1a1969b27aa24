package headgate

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// SharedGate is a [Gate] for all processes that share a store: at most n callers pass in any
// window of the length of a period, by the clock of the store, first come, first served
// in the order in which they ask that. Each pass takes one question; the store books the turn
// and says when it comes, so nobody polls.
//
// The promise holds for the moments at which callers see Wait return. They see it somewhat
// after the turn, and not all equally late; so the store keeps turns apart by the
// period and a slack, and a caller who would pass later than the slack after its turn lets that
// go and books another. So n pass in a period and the slack, at best. The clocks of the machines
// need not agree, but run equally fast; but where a server keeps its time from scripts, the
// callers' clocks decide, and must agree.
//
// A process has turns for at most n tokens booked at a time, and asks for some at a time; who comes on top of
// that waits in its process, first come, first served, and nothing is booked for it. Who
// stops waiting leaves its turn to those behind it in its process; if there are none it
// is not used. So is what a process had booked that dies. So a process that dies, or whose
// callers leave, delays others by at most a period and a slack, and never lets more pass.
//
// It is safe for use by many goroutines. Make one with [NewSharedGate].
type SharedGate struct {
	store Store
	key   string
	limit Limit
	slack time.Duration
	lines lines

	door   chan struct{} // holds one while somebody takes places
	booked chan struct{} // holds one for each token of a turn that is ahead, or asked for
	asking chan struct{} // holds one for each caller who asks

	life context.Context //nolint:containedctx // ends when the gate is closed
	end  context.CancelCauseFunc
}

const (
	// mostBooked bounds how many turns a process has at a time where n is larger. It is
	// as good as without end: no store answers so many questions in a slack.
	mostBooked = 1024

	// mostAsking bounds how many ask the store at a time, lest they make each other late.
	mostAsking = 8

	// atTheDoor is how long also one who will not wait stands behind others who take places,
	// which takes no time unless there are none.
	atTheDoor = time.Millisecond
)

// minSlack is the default slack of short periods: what a machine under load may be late.
const minSlack = 5 * time.Millisecond

// NewSharedGate makes a gate for all who name the same key in store. A slack of 0 means
// a hundredth of period, or 5 ms if that is longer. It has to be longer than the store takes
// to answer. n is at most 65,535. It returns an [InvalidError] for arguments that
// cannot be.
func NewSharedGate(store Store, key string, n int64, period, slack time.Duration) (*SharedGate, error) {
	if err := validateStore(store); err != nil {
		return nil, err
	}
	if n < 1 || n > maxLog {
		return nil, invalid("n", n, "from 1 to "+strconv.Itoa(maxLog))
	}
	if period <= 0 || period > maxAhead/4 {
		return nil, &InvalidError{Field: "period", Value: period.String(), Want: "more than 0, and at most 71 years"}
	}
	if slack == 0 {
		slack = max(period/100, minSlack).Truncate(time.Microsecond)
	}
	if slack < 0 || slack > maxAhead/4 {
		return nil, &InvalidError{Field: "slack", Value: slack.String(), Want: "0 for the default, or above, and at most 71 years"}
	}
	g := &SharedGate{store: store, key: key, limit: SlidingLog(n, ceilMicros(period+slack)+time.Microsecond).Named("gate"), slack: slack}
	if err := g.limit.Validate(); err != nil {
		return nil, err
	}
	g.door = make(chan struct{}, 1)
	g.booked = make(chan struct{}, min(n, mostBooked))
	g.asking = make(chan struct{}, mostAsking)
	g.life, g.end = context.WithCancelCause(context.Background())
	return g, nil
}

func ceilMicros(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// Most is the n of [NewSharedGate]: as many tokens can pass together.
func (g *SharedGate) Most() int64 { return g.limit.Capacity() }

// Rate is the n of [NewSharedGate], and the period and the slack together.
func (g *SharedGate) Rate() (n int64, period time.Duration) {
	return g.limit.Capacity(), g.limit.Period()
}

// Wait is WaitN for one token.
func (g *SharedGate) Wait(ctx context.Context) error { return g.WaitN(ctx, 1) }

// WaitN returns nil when the turn of n tokens has come, which pass together. It returns an
// error, and nothing has passed, if the context ends first; at once if its deadline
// comes before the turn (a [DeadlineError]); if the gate is closed ([ErrClosed]); if
// the store cannot say; or if its answers take longer than the slack time after time.
func (g *SharedGate) WaitN(ctx context.Context, n int64) error {
	if n < 1 || n > g.Most() {
		return invalid("n", n, fmt.Sprintf("from 1 to %d, which is what can pass together", g.Most()))
	}
	return g.wait(ctx, n, maxAhead)
}

// TryWait says whether the caller may go on: at once if timeout is 0, as soon as its turn
// has come if that is within timeout, and if timeout is negative however long it takes. If
// the turn cannot come within timeout it returns false, at once if the store says so. The
// errors are the others of WaitN.
func (g *SharedGate) TryWait(ctx context.Context, timeout time.Duration) (bool, error) {
	if timeout < 0 {
		timeout = maxAhead
	}
	err := g.wait(ctx, 1, min(timeout, maxAhead))
	met := err == nil
	if _, late := errors.AsType[*DeadlineError](err); late {
		err = nil
	}
	return met, err
}

// Peek says whether somebody who came now could pass at once, and if not, in how long its turn
// would come. It consumes nothing.
func (g *SharedGate) Peek(ctx context.Context) (open bool, in time.Duration, err error) {
	if g.life.Err() != nil {
		return false, Never, ErrClosed
	}
	d, err := g.store.Take(ctx, Request{Key: g.key, Limit: g.limit})
	return d.Allowed(), d.RetryAfter, err
}

// Close ends all waiting in this process, now and from now on, with [ErrClosed]. It does not
// close the store. Closing twice does nothing more.
func (g *SharedGate) Close() { g.end(ErrClosed) }

// wait books turns until one is met, none of them further ahead than that.
func (g *SharedGate) wait(ctx context.Context, n int64, most time.Duration) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(g.life, func() { cancel(ErrClosed) })() //nolint:contextcheck // the gate's own
	if g.life.Err() != nil {
		return ErrClosed
	}
	until := time.Now().Add(most)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(until) {
		until = deadline
	}
	places := min(n, int64(cap(g.booked)))
	if err := g.take(ctx, places, until); err != nil {
		return err
	}
	left := time.Time{} // when a turn comes that was left
	defer func() {
		if left.IsZero() {
			g.leave(places)
			return
		}
		time.AfterFunc(time.Until(left), func() { g.leave(places) })
	}()
	const tries, lates = 10, 100
	for slow, late := 0, 0; slow < tries && late < lates; slow, late = slow+1, late+1 {
		met, quick, err := g.turn(ctx, n, until, &left)
		if ctx.Err() != nil && err != nil {
			return context.Cause(ctx)
		}
		if met || err != nil {
			return err
		}
		if quick { // only this machine woke late
			slow = -1
		}
	}
	return fmt.Errorf("headgate: the gate's store answers, or this machine wakes, later than the slack of %s time after time: give it more", g.slack)
}

// take takes so many places of those who have booked, one caller after the other.
func (g *SharedGate) take(ctx context.Context, places int64, until time.Time) error {
	door := time.Now().Add(atTheDoor)
	if until.After(door) {
		door = until
	}
	if err := enter(ctx, g.door, door); err != nil {
		return err
	}
	defer func() { <-g.door }()
	for i := range places {
		if err := enter(ctx, g.booked, until); err != nil {
			g.leave(i)
			return err
		}
	}
	return nil
}

func (g *SharedGate) leave(places int64) {
	for range places {
		<-g.booked
	}
}

// enter puts one into room as soon as there is place, which goes to who came first.
func enter(ctx context.Context, room chan struct{}, until time.Time) error {
	select {
	case room <- struct{}{}:
		return nil
	default:
	}
	left := time.Until(until)
	if left <= 0 {
		return &DeadlineError{}
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case room <- struct{}{}:
		return nil
	case <-timer.C:
		return &DeadlineError{}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// turn books a turn and waits for it. It says whether the caller is in time for it, and whether
// the store was quick enough for that.
// If the caller leaves, left is when that turn comes.
func (g *SharedGate) turn(ctx context.Context, n int64, until time.Time, left *time.Time) (met, quick bool, err error) {
	most := min(max(time.Until(until), 0), maxAhead)
	asked, d, err := g.ask(ctx, n, most)
	if err != nil {
		return false, false, err
	}
	if !d.Within(most) {
		return false, false, &DeadlineError{Wait: d.RetryAfter}
	}
	answered := time.Now()
	quick = answered.Sub(asked) <= g.slack
	t := turnAhead{at: answered.Add(d.RetryAfter), earliest: asked.Add(d.RetryAfter)}
	if d.RetryAfter > 0 {
		if t, err = g.lines.wait(ctx, turnKey{}, n, t, noDesk{}); err != nil {
			*left = t.at
			return false, quick, err
		}
	}
	return time.Since(t.earliest) <= g.slack, quick, nil
}

// ask asks the store, as one of a few at a time, and says when it began.
func (g *SharedGate) ask(ctx context.Context, n int64, most time.Duration) (asked time.Time, d Decision, err error) {
	if err := enter(ctx, g.asking, time.Now().Add(maxAhead/4)); err != nil {
		return time.Time{}, Decision{}, err
	}
	defer func() { <-g.asking }()
	if ctx.Err() != nil {
		return time.Time{}, Decision{}, ctx.Err()
	}
	asked = time.Now()
	d, err = g.store.Take(ctx, Request{Key: g.key, Limit: g.limit, Cost: n, MaxWait: most})
	return asked, d, err
}

// noDesk takes no turn back: others may have been told theirs.
type noDesk struct{}

func (noDesk) run(do func())                         { do() }
func (noDesk) giveBack(uint64, int64)                {}
func (noDesk) look(uint64) (_ time.Duration, _ bool) { return 0, false }
