// Package fallback decides when a store across a network cannot.
//
// Its [Store] is put around another headgate.Store. It gives each decision a time budget, and stops
// calling a store that keeps failing (a circuit breaker). Without the store, its [Mode] decides:
//
//	store, err := fallback.New(redis, fallback.Options{
//		Mode:      fallback.Local,
//		Instances: fleet.Instances, // of redisstore.NewFleet, or a number that you know
//	})
//
// headgate.Decision.Degraded reports that a decision was made without the store.
//
// While the store fails, [Closed] grants nothing, [Open] grants costs up to the capacity, and
// [Local] grants at most this instance's share of the limit. So one limit can be granted twice:
// once by the store, and once by the shares. Each instance that starts while the store fails adds
// its share: docs/redis-fails.md has the formula, and docs/design/fallback.md the bounds of each
// algorithm.
package fallback

import (
	"cmp"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
)

// Mode is how decisions are made without the store.
type Mode uint8

const (
	// Closed denies. RetryAfter is the time until the store is called again.
	Closed Mode = iota + 1

	// Open grants every cost that the limit can ever grant, and counts nothing.
	Open

	// Local asks a store in this process, under this instance's share of the limit (see
	// headgate.Limit.Share). While the number of instances is unknown, it denies as Closed does.
	Local
)

// Options are the settings of [New].
type Options struct {
	// Mode is how decisions are made without the store: [Closed], [Open] or [Local]. Required.
	Mode Mode

	// Instances returns how many instances share the limits, this one included; less than 1 means
	// that the number is unknown. A number that is too small grants too much, so count instances
	// that are starting, too. It is called for each decision, by many goroutines. Required for
	// Local, and invalid for other modes.
	Instances func() int

	// Local is the store for the mode Local. It is charged while the other store answers, too,
	// so do not use it for other limiters. Default: headgate.NewMemory(). Invalid for other modes.
	Local headgate.Store

	// Timeout is the time budget of the store for each decision. For a caller with an earlier
	// deadline, the budget is three quarters of its time. A caller that leaves before the budget
	// ends gets the error of its context. The store may have charged a call that it did not answer
	// in time. Default: 50 ms.
	Timeout time.Duration

	// Failures is how many failures in a row open the circuit. The same number within ten seconds
	// also opens it, if at least half of the calls failed. One call at a time counts: calls that
	// begin while it is under way do not. Nor do late answers to calls with a smaller budget than
	// Timeout, or whose caller has left: callers could open the circuit of a store that works.
	//
	// Invalid input does not count as a failure. An error whose method Busy returns true, such as
	// redisstore.ErrBusy, does not count either: the request was rejected in this process. Nor does
	// headgate.ErrBadState, which concerns one key: the mode decides for that key. Default: 5.
	Failures int

	// OpenTimeout is how long the circuit stays open. After it, one call at a time tries the
	// store, and the first success closes the circuit. Default: 1 s.
	OpenTimeout time.Duration

	// OnChange is called when the circuit opens (degraded), with the failure, and when it closes.
	// The goroutine that called the store runs it before that call returns, so it must be quick.
	// The calls of OnChange do not overlap. Default: none.
	OnChange func(degraded bool, err error)
}

const (
	defaultTimeout     = 50 * time.Millisecond
	defaultFailures    = 5
	defaultOpenTimeout = time.Second
)

// Store is a headgate.Store around another one. It is safe for use by many goroutines. It starts no
// goroutines and needs no closing. Make one with [New].
//
// The other store must return when the context of a call ends, as redisstore does.
type Store struct {
	store    headgate.Store
	options  Options
	circuits *circuits
	shares   shares
	unknown  shares        // for 0 instances: what the share never holds
	degraded atomic.Uint64 // decisions made without the store
}

var _ headgate.Store = (*Store)(nil)

// New puts a fallback around store. It returns a *headgate.InvalidError if a store is nil or a
// zero value, if a number is negative, or if the options do not fit the mode.
func New(store headgate.Store, o Options) (*Store, error) {
	if err := o.validate(store); err != nil {
		return nil, err
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.Failures = cmp.Or(o.Failures, defaultFailures)
	o.OpenTimeout = cmp.Or(o.OpenTimeout, defaultOpenTimeout)
	if o.Mode == Local && o.Local == nil {
		o.Local = headgate.NewMemory()
	}
	return &Store{store: store, options: o, circuits: newCircuits(store, o)}, nil
}

func (o *Options) validate(store headgate.Store) error {
	bad := func(field, value, want string) error {
		return &headgate.InvalidError{Field: field, Value: value, Want: want}
	}
	switch {
	case headgate.ValidateStore(store) != nil:
		return bad("store", "nil or a zero value",
			"a Store that instances share, such as redisstore's")
	case o.Mode == 0:
		return bad("Mode", "not set", "Closed (deny), Open (grant) or Local (grant a share)")
	case o.Mode > Local:
		return bad("Mode", strconv.Itoa(int(o.Mode)), "Closed, Open or Local")
	case o.Mode != Local && o.Instances != nil:
		return bad("Instances", "a function", "nil unless Mode is Local")
	case o.Mode != Local && o.Local != nil:
		return bad("Local", "a store", "nil unless Mode is Local")
	case o.Mode == Local && o.Instances == nil:
		return bad("Instances", "nil", "a function, because Mode is Local")
	case o.Local != nil && headgate.ValidateStore(o.Local) != nil:
		return bad("Local", "a zero value", "a Store, such as headgate.NewMemory(), or nil")
	case o.Timeout < 0:
		return bad("Timeout", o.Timeout.String(), "more than 0, or 0 for 50ms")
	case o.Failures < 0:
		return bad("Failures", strconv.Itoa(o.Failures), "at least 1, or 0 for 5")
	case o.OpenTimeout < 0:
		return bad("OpenTimeout", o.OpenTimeout.String(), "more than 0, or 0 for 1s")
	}
	return nil
}
