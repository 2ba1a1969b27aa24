// Package limittest is the suite that every headgate.Store passes. The test of a
// store is one call:
//
//	func TestStore(t *testing.T) {
//		limittest.Run(t, func(t *testing.T) headgate.Store { return newStore(t) })
//	}
//
// It holds the store to the vectors in testdata/vectors.txt, to the definitions of
// the algorithms (each decision is checked against a naive model in exact
// fractions), to headgate.Memory field by field, to the invariants, and to the
// defects that others have paid for.
package limittest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Ops is the number of random operations for each algorithm, in the comparisons
// with the definitions and with Memory; a hundredth of it with -short.
const Ops = 100_000

// Open makes a store with no state in it, or at least none of the keys that were
// used before. It must hold at least 20,000 keys. Clean up with t.Cleanup.
type Open func(t *testing.T) headgate.Store

// Run runs the whole suite.
func Run(t *testing.T, open Open) {
	t.Run("vectors", func(t *testing.T) { Vectors(t, open(t)) })
	t.Run("definitions", func(t *testing.T) { Definitions(t, open(t)) })
	t.Run("agreement", func(t *testing.T) { Agreement(t, open(t), headgate.NewMemory(0)) })
	t.Run("invariants", func(t *testing.T) { invariants(t, open) })
	t.Run("lessons", func(t *testing.T) { lessons(t, open) })
	t.Run("turns", func(t *testing.T) { turns(t, open) })
}

// epoch is the instant from which the tests count: aligned to every window up to a
// day, and ahead of every store's own clock, so that what one sequence of requests
// does to the time makes no other's state look old.
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

func ops() int {
	if testing.Short() {
		return Ops / 100
	}
	return Ops
}

func take(t testing.TB, s headgate.Store, r headgate.Request) headgate.Decision {
	t.Helper()
	d, err := s.Take(t.Context(), r)
	if err != nil {
		t.Fatalf("Take(%s): %v", show(r), err)
	}
	return d
}

func parse(t testing.TB, text string) headgate.Limit {
	t.Helper()
	l, err := headgate.ParseLimit(text)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
