package cli

import (
	"context"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/concurrency"
	"github.com/headgate/headgate/gate"
	"github.com/headgate/headgate/internal/await"
)

// turns are what parts of a stream wait for.
type turns interface {
	// wait returns nil when n tokens may pass, or the error of ctx if that ends before.
	wait(ctx context.Context, n int64) error
	// passed records that what the last wait was for has passed just now.
	passed()
}

// newTurns returns the turns that keep the limits most exactly in s. With byBytes, a wait is for
// many tokens, which a SharedGate does not pass together.
func newTurns(key string, limits []headgate.Limit, s *store, byBytes bool) (turns, error) {
	if _, alone := s.Store.(*headgate.Memory); alone {
		return newOwnTurns(key, limits, s), nil
	}
	first := limits[0]
	permits, ok := s.Store.(concurrency.Store)
	if ok && !byBytes && len(limits) == 1 && first.Algorithm() == headgate.AlgorithmSlidingLog {
		g, err := gate.NewShared(permits, key+" "+first.ID(), first.Capacity(), first.Period())
		return sharedTurns{g}, err
	}
	l, err := headgate.NewLimiter(s.Store, limits...)
	return bookedTurns{l, key}, err
}

// ownTurns are for limits that no other process shares. Nothing is booked: a part counts
// from when it has passed, however late it was woken and however long it took to write. So the
// limits hold for the moments that a reader sees.
type ownTurns struct {
	store     *store
	begun     time.Time // all times are counted from it, so that setting the clock moves none
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
		if err := await.Sleep(ctx, d.RetryAfter); err != nil {
			return err
		}
	}
}

// passed moves the grant to now, rounded up: it must not count from before it passed.
func (o *ownTurns) passed() {
	ctx := context.Background()
	_, _ = o.take(ctx, -o.n, 0) // memory never fails
	_, _ = o.take(ctx, o.n, time.Microsecond-1)
}

// take makes a request of all limits, now or later. Stores round times down to microseconds.
func (o *ownTurns) take(
	ctx context.Context, n int64, later time.Duration,
) (headgate.Decision, error) {
	at := o.begun.Add(time.Since(o.begun) + later)
	for i := range o.requests {
		o.requests[i].Cost, o.requests[i].At = n, at
	}
	if err := o.store.TakeAll(ctx, o.requests, o.decisions); err != nil {
		return headgate.Decision{}, err
	}
	return headgate.Strictest(o.decisions), nil
}

// sharedTurns are for lines under one sliding log that other processes share.
type sharedTurns struct{ gate *gate.SharedGate }

func (s sharedTurns) wait(ctx context.Context, n int64) error { return s.gate.WaitN(ctx, n) }
func (sharedTurns) passed()                                   {}

// bookedTurns are for limits that other processes share: first come, first served.
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
	return awaitStart(ctx, turn)
}

// awaitStart waits for turn, and cancels it if ctx ends before.
func awaitStart(ctx context.Context, turn *headgate.Reservation) error {
	err := await.Sleep(ctx, turn.Delay())
	if err != nil {
		_ = turn.Cancel(ctx) // otherwise it is charged and not used
	}
	return err
}
