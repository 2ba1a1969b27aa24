package headgate

import (
	"context"
	"time"
)

// Observer is the functions that [Observe] calls. Each may be nil, and costs nothing then. They
// are called by the goroutine that asked the store, after the answer and before the asker has it:
// so they should be quick, are called by many goroutines at once, and must not keep anybody
// waiting. A panic in one is a panic of the asker, after the decision has been made and charged.
type Observer struct {
	// Decided is called for each request of a Take or TakeAll, in their order.
	Decided func(context.Context, Observed)

	// Called is called for each Take, TakeAll and Reset, after Decided. Only for it is the time taken: two
	// readings of the clock.
	Called func(context.Context, Call)
}

// Observed is a request and what came of it.
//
// Its key is there for who wants names (see [TopDenied]). Metrics should be labelled by
// the name of the limit and never by key: strangers choose keys, and each new one would
// be a series that lives as long as the process.
type Observed struct {
	Request  Request
	Decision Decision // the zero Decision if Err is not nil
	Outcome  Outcome
	Err      error // the store could not say; that of the whole TakeAll
}

// Outcome is what came of a request. Its String is one word, good as a label.
type Outcome uint8

// The outcomes. A request is either of them.
const (
	OutcomeAllowed  Outcome = iota + 1 // granted at once
	OutcomeBooked                      // granted, for a turn ahead (see Request.MaxWait)
	OutcomeDenied                      // refused by this limit; of a look or a take-back, that its ticket is unknown
	OutcomeSpared                      // not refused by this limit, but by another of the same TakeAll: nothing was done
	OutcomeLooked                      // a look (a cost of 0), whatever else it saw
	OutcomeReturned                    // tokens given back (a negative cost), as far as there were any
	OutcomeFailed                      // an error: not decided, as far as the store can tell
)

var outcomeNames = [...]string{"none", "allowed", "booked", "denied", "spared", "looked", "returned", "failed"}

func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "none"
	}
	return outcomeNames[o]
}

// Call is one call of a store.
type Call struct {
	Method   string // "Take", "TakeAll" or "Reset"
	Requests int    // how many it asked at once; 0 of Reset
	Took     time.Duration
	Err      error
}

// Observe returns a store that answers as store does, and tells o. If o has no functions, it
// is store itself, so that what is off costs nothing. Several observers are stores around
// each other: the outer one sees the time that the inner one takes.
//
// It observes what goes through it. Around a store that asks another one, it tells
// what callers see; inside of it, what the other one is asked.
//
// It returns an [*InvalidError] if store is nil or a zero value.
func Observe(store Store, o Observer) (Store, error) {
	if _, err := newLimiter(store, nil); err != nil { // which takes the same stores
		return nil, err
	}
	if o.Decided == nil && o.Called == nil {
		return store, nil
	}
	return &observed{store: store, observer: o}, nil
}

type observed struct {
	store    Store
	observer Observer
}

// Take implements [Store].
func (s *observed) Take(ctx context.Context, r Request) (Decision, error) {
	start := s.start()
	d, err := s.store.Take(ctx, r)
	took := s.since(start)
	if s.observer.Decided != nil {
		s.observer.Decided(ctx, Observed{Request: r, Decision: d, Outcome: outcome(&r, d, r.MaxWait, false, err), Err: err})
	}
	s.called(ctx, Call{Method: "Take", Requests: 1, Took: took, Err: err})
	return d, err
}

// TakeAll implements [Store].
func (s *observed) TakeAll(ctx context.Context, rs []Request, ds []Decision) error {
	start := s.start()
	err := s.store.TakeAll(ctx, rs, ds)
	took := s.since(start)
	if s.observer.Decided != nil {
		s.decided(ctx, rs, ds, err)
	}
	s.called(ctx, Call{Method: "TakeAll", Requests: len(rs), Took: took, Err: err})
	return err
}

// Reset implements [Store].
func (s *observed) Reset(ctx context.Context, key string, l Limit) error {
	start := s.start()
	err := s.store.Reset(ctx, key, l)
	s.called(ctx, Call{Method: "Reset", Took: s.since(start), Err: err})
	return err
}

func (s *observed) decided(ctx context.Context, rs []Request, ds []Decision, err error) {
	if err != nil {
		for i := range rs {
			s.observer.Decided(ctx, Observed{Request: rs[i], Outcome: OutcomeFailed, Err: err})
		}
		return
	}
	patience, refused := patienceOf(rs), !Granted(rs, ds)
	for i := range rs {
		s.observer.Decided(ctx, Observed{Request: rs[i], Decision: ds[i], Outcome: outcome(&rs[i], ds[i], patience, refused, nil)})
	}
}

// outcome tells what came of r, which was asked by itself or in a group that waits no
// longer than patience and was refused or not.
func outcome(r *Request, d Decision, patience time.Duration, refused bool, err error) Outcome {
	switch {
	case err != nil:
		return OutcomeFailed
	case refuses(r, d, patience):
		return OutcomeDenied
	case r.Cost == 0:
		return OutcomeLooked
	case refused:
		return OutcomeSpared
	case r.Cost < 0:
		return OutcomeReturned
	case d.RetryAfter > 0:
		return OutcomeBooked
	default:
		return OutcomeAllowed
	}
}

func (s *observed) start() time.Time {
	if s.observer.Called == nil {
		return time.Time{}
	}
	return time.Now()
}

func (s *observed) since(start time.Time) time.Duration {
	if s.observer.Called == nil {
		return 0
	}
	return time.Since(start)
}

func (s *observed) called(ctx context.Context, c Call) {
	if s.observer.Called != nil {
		s.observer.Called(ctx, c)
	}
}
