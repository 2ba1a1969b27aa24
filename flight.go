package headgate

import (
	"context"
	"sync"
	"time"
)

// Flight is a place among the N of a key, held until it is given back or its lease
// ends. [Concurrency.Acquire] and [Concurrency.Wait] give it. It is safe for use by many
// goroutines.
//
//	defer flight.Release(ctx)
type Flight struct {
	store   ConcurrencyStore
	request FlightRequest
	turn    chan struct{} // held by who is releasing

	mu      sync.Mutex
	until   time.Time     // the lease ends no sooner
	outcome error         // ErrReleased or ErrLeaseLost, once that is known
	doubt   bool          // a release got no answer, and may have been made
	over    chan struct{} // closed when it is given back, or that is tried, or it is lost
	closed  bool          // over is
}

func newFlight(store ConcurrencyStore, r FlightRequest, asked time.Time) *Flight {
	return &Flight{
		store:   store,
		request: r,
		turn:    make(chan struct{}, 1),
		until:   asked.Add(r.Lease),
		over:    make(chan struct{}),
	}
}

// Key is the key of which this is a flight.
func (f *Flight) Key() string { return f.request.Key }

// ID tells this flight apart from the others of its key.
func (f *Flight) ID() FlightID { return f.request.ID }

// Until is the time before which the lease does not end, by this process's clock,
// provided that it ticks as fast as the store's: a lease after the store was last
// asked for it.
func (f *Flight) Until() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.until
}

// Release gives the flight back. However often it is called, and by however many, that
// happens once, and one call returns nil; every other returns [ErrReleased]. If the
// lease had ended before, all return [ErrLeaseLost]; then nothing is given back, and
// nobody else's flight is touched.
//
// Any other error means that the store did not answer: the flight may have been given
// back. To call again is safe, and nil then says that it is not held any more. If
// nobody does, the lease ends.
//
// A ctx that ends, or has ended, does not keep the flight from being given back. A store in
// this process, as MemoryConcurrency is, does that at once and without a look at ctx; one
// across a network returns the error of ctx and gives back behind the caller, and so does
// a call that waits for another one of the same flight.
func (f *Flight) Release(ctx context.Context) error {
	f.finish()
	if err := f.takeTurn(ctx); err != nil {
		return err // whose turn it is gives it back
	}
	defer func() { <-f.turn }()
	if err := f.known(); err != nil {
		return err
	}
	held, err := f.store.ReleaseFlight(ctx, f.request)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case err != nil:
		f.doubt = true
		return err
	case held || f.doubt:
		f.outcome = ErrReleased
		return nil
	default:
		f.outcome = ErrLeaseLost
		return ErrLeaseLost
	}
}

// takeTurn waits until nobody else is releasing. It looks at ctx only if it has to wait.
func (f *Flight) takeTurn(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Renew prolongs the lease: it then ends a whole lease after now, or later. It returns
// [ErrLeaseLost] if the lease had ended before, after which the place may be
// another's, and [ErrReleased] if Release has been called. Any other error means that
// the store did not answer; the lease lasts until [Flight.Until] at least, and to call
// again is safe.
func (f *Flight) Renew(ctx context.Context) error {
	if f.isOver() {
		return f.why()
	}
	asked := time.Now()
	held, err := f.store.RenewFlight(ctx, f.request)
	if err != nil {
		return err
	}
	if !held {
		if !f.isOver() {
			f.lose()
		}
		return f.why()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if until := asked.Add(f.request.Lease); until.After(f.until) {
		f.until = until
	}
	return nil
}

// Keep renews the lease by itself, from a goroutine, whenever a third of it has passed,
// until the flight is given back or cancel is called. The work that needs the flight
// should run under the context that is returned. It ends with ctx; when the lease has been
// lost, or may end because the store has not answered for as long as it lasts; and
// when Release is called. [context.Cause] then gives ErrLeaseLost or ErrReleased.
//
// A flight that is not kept any more is not given back by that: call Release.
func (f *Flight) Keep(ctx context.Context) (kept context.Context, cancel context.CancelFunc) {
	kept, end := context.WithCancelCause(ctx)
	go func() { end(f.keep(kept)) }()
	return kept, func() { end(nil) }
}

// keep renews until there is a reason not to.
func (f *Flight) keep(ctx context.Context) error {
	lease := f.request.Lease
	var err error
	for {
		left := time.Until(f.Until())
		if left <= 0 {
			return ErrLeaseLost
		}
		pause := left - 2*lease/3
		if err != nil {
			pause = min(max(left/4, lease/50), left) // the store may come back
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-f.over:
			timer.Stop()
			return f.why()
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
		err = f.renewInTime(ctx)
	}
}

// renewInTime is Renew by a call that ends when the lease may.
func (f *Flight) renewInTime(ctx context.Context) error {
	ctx, cancel := context.WithDeadline(ctx, f.Until())
	defer cancel()
	return f.Renew(ctx)
}

// finish notes that Release has been called, or the lease lost: nobody renews from now on.
func (f *Flight) finish() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.over)
	}
}

func (f *Flight) lose() {
	f.finish()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.outcome == nil {
		f.outcome = ErrLeaseLost
	}
}

func (f *Flight) isOver() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// known is how the flight ended, or nil as long as that is not known.
func (f *Flight) known() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcome
}

// why is how a flight that is over ended: a release that has not been answered is one.
func (f *Flight) why() error {
	if err := f.known(); err != nil {
		return err
	}
	return ErrReleased
}
