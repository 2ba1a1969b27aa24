package main

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/gate"
)

// turns are what parts of a stream wait for.
type turns interface {
	// wait returns nil when n tokens may pass, or the error of ctx if that ends before.
	wait(ctx context.Context, n int64) error
	// passed is told that what the last wait was for has passed just now.
	passed()
}

// newTurns makes those that keep limits best in s: to the moment where that can be.
func newTurns(key string, limits []headgate.Limit, s *store) (turns, error) {
	if _, alone := s.Store.(*headgate.Memory); alone {
		return newOwnTurns(key, limits, s), nil
	}
	if len(limits) == 1 && limits[0].Algorithm() == headgate.AlgorithmSlidingLog {
		g, err := gate.NewShared(s.Store, key+" "+limits[0].ID(), limits[0].Capacity(), limits[0].Period(), 0)
		return sharedTurns{g}, err
	}
	l, err := headgate.NewLimiter(s.Store, limits...)
	return bookedTurns{l, key}, err
}

// ownTurns are those of one who shares the limits with nobody. Nothing is booked: what
// passes counts from when it has passed, however late it was woken and however long it took
// to write. So the limits hold for the moments that a reader sees.
type ownTurns struct {
	store     *store
	begun     time.Time // all times are counted from it, so that nobody who sets the clock moves them
	requests  []headgate.Request
	decisions []headgate.Decision
	n         int64 // of the last wait
}

func newOwnTurns(key string, limits []headgate.Limit, s *store) *ownTurns {
	o := &ownTurns{store: s, begun: time.Now(), decisions: make([]headgate.Decision, len(limits))}
	for _, l := range limits {
		o.requests = append(o.requests, headgate.Request{Key: key, Limit: l})
	}
	return o
}

func (o *ownTurns) wait(ctx context.Context, n int64) error {
	o.n = n
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		d, err := o.take(ctx, n, 0)
		if err != nil || d.Allowed() {
			return err
		}
		if err := sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// passed takes what was granted anew: now, rounded up, for nothing may count from before it passed.
func (o *ownTurns) passed() {
	ctx := context.Background()
	_, _ = o.take(ctx, -o.n, 0) // memory never fails
	_, _ = o.take(ctx, o.n, time.Microsecond-1)
}

// take asks all limits now, or so much later. Stores round times down to microseconds.
func (o *ownTurns) take(ctx context.Context, n int64, later time.Duration) (headgate.Decision, error) {
	at := o.begun.Add(time.Since(o.begun) + later)
	for i := range o.requests {
		o.requests[i].Cost, o.requests[i].At = n, at
	}
	if err := o.store.TakeAll(ctx, o.requests, o.decisions); err != nil {
		return headgate.Decision{}, err
	}
	return headgate.Strictest(o.decisions), nil
}

// sharedTurns are those of a sliding log that others pass as well.
type sharedTurns struct{ gate *gate.SharedGate }

func (s sharedTurns) wait(ctx context.Context, n int64) error { return s.gate.WaitN(ctx, n) }
func (sharedTurns) passed()                                   {}

// bookedTurns are booked with a store that others ask as well: first come, first served.
type bookedTurns struct {
	limiter *headgate.Limiter
	key     string
}

func (bookedTurns) passed() {}

func (b bookedTurns) wait(ctx context.Context, n int64) error {
	turn, err := b.limiter.Reserve(ctx, b.key, n)
	if err != nil {
		return err
	}
	return await(ctx, turn)
}

// await waits for turn, and cancels it if ctx ends before.
func await(ctx context.Context, turn *headgate.Reservation) error {
	err := sleep(ctx, turn.Delay())
	if err != nil {
		_ = turn.Cancel(ctx) // otherwise it is charged and not used
	}
	return err
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
