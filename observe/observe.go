// Package observe reports what a store decides: to metrics, to logs, or to a list of the keys
// denied most.
//
//	top := observe.NewTopDenied(1000)
//	store, err := observe.New(store, observe.Observer{Decided: top.Decided})
package observe

import (
	"context"
	"time"

	"github.com/headgate/headgate"
)

// Observer holds the functions that a store made by [New] calls. Each may be nil.
//
// The goroutine that called the store calls them, after the store has answered. So they must be
// quick and safe for use by many goroutines. A panic in one is a panic of the caller; by then the
// decision has been made and charged.
type Observer struct {
	// Decided is called for each request of a Take or TakeAll, in order.
	Decided func(context.Context, Event)

	// Called is called for each Take, TakeAll and Reset, after Decided. Without it, no time is
	// measured, which saves two readings of the clock.
	Called func(context.Context, Call)
}

// Event is a request and its outcome.
//
// Label metrics by the name of the limit, never by the key: clients choose keys, and each key
// would be a series that is kept as long as the process runs. See [TopDenied] for keys.
type Event struct {
	Request  headgate.Request
	Decision headgate.Decision // the zero Decision if Err is not nil
	Outcome  Outcome
	Err      error // of the whole call
}

// Call is one call of a store.
type Call struct {
	Method   string // "Take", "TakeAll" or "Reset"
	Requests int    // 0 for Reset
	Took     time.Duration
	Err      error
}

// New returns a store that answers as store does and reports each answer to observers.
//
// It reports the requests that it receives. If another store is around it, these are the requests
// that the other store sends. If the observers have no functions, New returns store itself. It
// returns a [headgate.InvalidError] if store is nil or a zero value.
func New(store headgate.Store, observers ...Observer) (headgate.Store, error) {
	if err := headgate.ValidateStore(store); err != nil {
		return nil, err
	}
	s := &observed{store: store}
	for _, o := range observers {
		if o.Decided != nil {
			s.decided = append(s.decided, o.Decided)
		}
		if o.Called != nil {
			s.called = append(s.called, o.Called)
		}
	}
	if s.decided == nil && s.called == nil {
		return store, nil
	}
	return s, nil
}

type observed struct {
	store   headgate.Store
	decided []func(context.Context, Event)
	called  []func(context.Context, Call)
}

// Take implements [headgate.Store].
func (s *observed) Take(ctx context.Context, r headgate.Request) (headgate.Decision, error) {
	start := s.now()
	d, err := s.store.Take(ctx, r)
	call := Call{Method: "Take", Requests: 1, Took: s.now().Sub(start), Err: err}
	s.reportDecision(ctx, &r, d, outcome(&r, d, r.MaxWait, false, err), err)
	s.reportCall(ctx, call)
	return d, err
}

// TakeAll implements [headgate.Store].
func (s *observed) TakeAll(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	start := s.now()
	err := s.store.TakeAll(ctx, rs, ds)
	call := Call{Method: "TakeAll", Requests: len(rs), Took: s.now().Sub(start), Err: err}
	if len(s.decided) > 0 {
		s.reportGroup(ctx, rs, ds, err)
	}
	s.reportCall(ctx, call)
	return err
}

// Reset implements [headgate.Store].
func (s *observed) Reset(ctx context.Context, key string, l headgate.Limit) error {
	start := s.now()
	err := s.store.Reset(ctx, key, l)
	s.reportCall(ctx, Call{Method: "Reset", Took: s.now().Sub(start), Err: err})
	return err
}

func (s *observed) reportGroup(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision, err error,
) {
	patience, refused := patienceOf(rs), err == nil && !headgate.Granted(rs, ds)
	for i := range rs {
		var d headgate.Decision
		if err == nil {
			d = ds[i]
		}
		s.reportDecision(ctx, &rs[i], d, outcome(&rs[i], d, patience, refused, err), err)
	}
}

func (s *observed) reportDecision(
	ctx context.Context, r *headgate.Request, d headgate.Decision, o Outcome, err error,
) {
	for _, decided := range s.decided {
		decided(ctx, Event{Request: *r, Decision: d, Outcome: o, Err: err})
	}
}

func (s *observed) reportCall(ctx context.Context, c Call) {
	for _, called := range s.called {
		called(ctx, c)
	}
}

// now is the zero time if no observer needs it.
func (s *observed) now() time.Time {
	if len(s.called) == 0 {
		return time.Time{}
	}
	return time.Now()
}
