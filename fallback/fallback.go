// Package fallback decides when the store cannot: a headgate.Store around a store across a
// network, with a time budget for each decision and a circuit breaker.
//
//	store, err := fallback.New(redis, fallback.Options{
//		Mode:      fallback.Local,
//		Instances: fleet.Instances, // of redisstore.NewFleet, or a number that you know
//	})
//
// Decisions that were not the store's say so by headgate.Decision.Degraded.
//
// # How much is granted
//
// With [Closed] never more than the limit. With [Open] everything. With [Local], whatever fails and for
// whom, at most what the store grants, and what the shares of all n instances do together (see
// headgate.Limit.Share). These hold M tokens, which is the limit's capacity or count C, or n where there are
// more instances than that, because each share holds one. So it is at most twice the limit, or where n > C the limit
// and one token for each instance.
//
// If the store fails for all instances and comes back for all, less. In any interval t in which the fleet goes over
// or back k times, and where m is for how long in it some instances ask the store while others do not,
//
//   - a token bucket of rate r grants at most (k+1) x M + r x (t + m);
//   - a stepped one of steps of S tokens at most (k+1) x (M + S) + r x (t + m), with n for S where S is
//     less: a step may come at the very beginning of each of the k+1 parts;
//   - a sliding log at most (k+1) x M, where t is its window;
//   - a fixed or sliding window at most (k+1) x M in each window of its own, which are aligned to the Unix epoch. An
//     interval as long lies in two of those, around an edge, and may hold twice that: 2 x C of a fixed window with
//     k = 0, as without a fallback.
//
// The time m is at most Timeout when the store fails and Pause and Timeout when it is back, on a fleet that is asked
// without a pause. While the store
// answers, each share is charged with what its instance is granted, so if load is spread evenly going
// over adds nothing, and M comes on top once, when a store that has refilled meanwhile is back.
//
// This holds while the Instances known are no fewer than there are. A turn that was booked ahead counts for
// when it comes, which may be after the store is back.
package fallback

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/sony/gobreaker/v2"
)

// Mode says what decides while the store cannot.
type Mode uint8

const (
	// Closed denies, until the store is asked again, which is RetryAfter. Nothing is left
	// then. It is the default because it alone needs to know nothing to keep every limit.
	Closed Mode = iota

	// Open grants, and counts nothing: each key is told that all is left, but for costs that the limit can
	// never grant. Of the last 65,536 grants with a ticket it remembers, in 4 MB, that they may be taken back.
	Open

	// Local asks a store in this process, under this instance's share of the limit. While the number
	// of instances is unknown it acts as Closed.
	Local
)

// Options of [New].
type Options struct {
	// Mode says what decides while the store cannot. Default: [Closed].
	Mode Mode

	// Instances tells among how many instances a limit is shared, this one among them. Less than
	// 1 says that nobody knows yet: then Local acts as Closed. Too many is short, too few is over: count
	// those that are being started. It is called for each decision by many goroutines. Required for Local, and for no other mode.
	Instances func() int

	// Local is the store that Local asks. It is charged while the other one answers,
	// too, so give it a call of its own, not the store of other limiters. Default:
	// headgate.NewMemory(0), which holds a million keys and begins small. For no other mode.
	Local headgate.Store

	// Timeout is how long the store may take for a decision. A caller's context that ends
	// earlier ends the call earlier, with its error: give callers more time than this. That says nothing of the
	// store by itself, but callers who left one after the other, while nobody had an answer, and waited for
	// a Timeout in all, are a failure. What was asked may be charged all the same. Default: 50 ms.
	Timeout time.Duration

	// Failures is how many open the breaker. Then the store is left alone, which means that it is not asked, and Mode
	// decides. It opens after so many failures in a row, or so many in ten seconds if they are at
	// least half of the calls.
	//
	// Of calls that overlap only the first counts. So one late answer is one failure, however many wait for it, and a
	// store that hangs is left alone after Failures x Timeout.
	//
	// An error with a method Busy that returns true, such as redisstore.ErrBusy, is no failure: the request was turned
	// away on this side, without a wait, to keep a queue short that moves. Mode decides it, and if the queue does
	// not move, those who are in it fail. Default: 5.
	Failures int

	// Pause is for how long the store is left alone. After it, one caller at a time asks
	// it, and the first that is answered closes the breaker. Default: 1 s.
	Pause time.Duration

	// OnChange is told when the store is left alone (degraded), and why, and when it answers again. It is called
	// by a caller of the store, after the store answered or did not, for one change after the other. A panic in it is a
	// panic of that caller, and the next changes are told all the same. Default: nobody.
	OnChange func(degraded bool, err error)
}

const (
	defaultTimeout  = 50 * time.Millisecond
	defaultFailures = 5
	defaultPause    = time.Second
)

// Store is a headgate.Store around another one. It is safe for use by many goroutines, starts
// none, and needs no closing. Make one with [New].
//
// The store around which it is must return when its context ends, as redisstore does: its callers
// wait for that. A call to Redis that was left goes on until the client's own timeouts. There
// are at most as many such calls as callers who asked until it was left alone, and then one for
// each Pause.
type Store struct {
	store   headgate.Store
	options Options
	shares  shares
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	changes changes
	instead atomic.Uint64
	tickets tickets

	watched  atomic.Bool   // the breaker watches a call
	silent   time.Duration // see silence; of whom it watches
	answered atomic.Bool   // somebody, since the breaker watched a call
}

var _ headgate.Store = (*Store)(nil)

// New puts a fallback around store. It returns a *headgate.InvalidError if store or Local is nil or a zero value, if a number is
// negative, or if the options do not fit the mode.
func New(store headgate.Store, o Options) (*Store, error) {
	if err := o.validate(store); err != nil {
		return nil, err
	}
	o.Timeout = orDefault(o.Timeout, defaultTimeout)
	o.Failures = orDefault(o.Failures, defaultFailures)
	o.Pause = orDefault(o.Pause, defaultPause)
	if o.Mode == Local && o.Local == nil {
		o.Local = headgate.NewMemory(0)
	}
	s := &Store{store: store, options: o}
	s.breaker = newBreaker(s)
	return s, nil
}

func orDefault[T comparable](value, otherwise T) T {
	if value == *new(T) {
		return otherwise
	}
	return value
}

func (o *Options) validate(store headgate.Store) error {
	bad := func(field, value, want string) error {
		return &headgate.InvalidError{Field: field, Value: value, Want: want}
	}
	switch {
	case !askable(store):
		return bad("store", "nil or a zero value", "a Store that others share, such as that of redisstore")
	case o.Local != nil && !askable(o.Local):
		return bad("Local", "nil or a zero value", "a Store, such as headgate.NewMemory(0), or none")
	case o.Mode > Local:
		return bad("Mode", strconv.Itoa(int(o.Mode)), "Closed, Open or Local")
	case o.Mode == Local && o.Instances == nil:
		return bad("Instances", "nil", "a function, because Local grants this instance's share of a limit")
	case o.Mode != Local && o.Instances != nil:
		return bad("Instances", "a function", "none, or the mode Local")
	case o.Mode != Local && o.Local != nil:
		return bad("Local", "a store", "none, or the mode Local")
	case o.Timeout < 0:
		return bad("Timeout", o.Timeout.String(), "more than 0, or 0 for 50ms")
	case o.Failures < 0:
		return bad("Failures", strconv.Itoa(o.Failures), "at least 1, or 0 for 5")
	case o.Pause < 0:
		return bad("Pause", o.Pause.String(), "more than 0, or 0 for 1s")
	}
	return nil
}

// askable says whether store is one that a limiter takes.
func askable(store headgate.Store) bool {
	if s, ours := store.(*Store); ours && s != nil && s.store == nil {
		return false
	}
	_, err := headgate.NewLimiterFunc(store, func(string) []headgate.Limit { return nil })
	return err == nil
}
