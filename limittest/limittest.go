// Package limittest is the suite that every headgate.Store passes. The test of a store is one call:
//
//	func TestStore(t *testing.T) {
//		limittest.Run(t, func(t *testing.T) headgate.Store { return newStore(t) })
//	}
//
// It compares the store with the vectors in testdata/vectors.txt and with a naive model of the
// definitions, field by field. It also tests invariants, and looks for defects that other limiters
// have had. If the store answers headgate.ErrNoBooking to requests that book ahead, the suite only
// checks that such requests charge nothing.
//
// The random tests use fixed seeds. With HEADGATE_SOAK set to a duration, each of them
// uses random seeds for that long; HEADGATE_SEED repeats one seed.
package limittest

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Open returns a store without state. It does not share state with stores returned before. The
// store must hold at least 20,000 keys. Clean up with t.Cleanup.
type Open func(t *testing.T) headgate.Store

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	t.Run("vectors", func(t *testing.T) { Vectors(t, open(t)) })
	t.Run("definitions", func(t *testing.T) { Definitions(t, open(t)) })
	t.Run("invariants", func(t *testing.T) { runAll(t, open, invariants) })
	if books(t, open(t)) {
		t.Run("booking", func(t *testing.T) { runAll(t, open, bookings) })
	} else if fault := withoutBooking(t, open(t)); fault != "" {
		t.Error(fault)
	}
	t.Run("late refunds", func(t *testing.T) { runAll(t, open, lateRefunds) })
	t.Run("force", func(t *testing.T) { runAll(t, open, forces) })
	t.Run("headroom", func(t *testing.T) { runAll(t, open, headrooms) })
	t.Run("changed numbers", func(t *testing.T) { runAll(t, open, changes) })
	t.Run("lessons", func(t *testing.T) { runAll(t, open, lessons) })
}

// epoch is the time from which the tests count: aligned to every window up to a day,
// and ahead of every store's own clock.
var epoch = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)

// check is one thing that must be true of every store.
type check struct {
	name string
	run  func(t *testing.T, s headgate.Store)
}

func runAll(t *testing.T, open Open, checks []check) {
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// books reports whether s books ahead.
func books(t testing.TB, s headgate.Store) bool {
	_, err := s.Take(t.Context(), headgate.Request{
		Key: "books", Limit: headgate.PerSecond(1), MaxWait: time.Second, At: epoch,
	})
	return !errors.Is(err, headgate.ErrNoBooking)
}

func take(t testing.TB, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatalf("Take(%s): %v", show(r), err)
	}
	return d
}

func takeAll(t testing.TB, s headgate.Store, rs ...headgate.Request) []headgate.Decision {
	t.Helper()
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatalf("TakeAll of %d, the first %s: %v", len(rs), show(rs[0]), err)
	}
	return ds
}

func parse(t testing.TB, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
