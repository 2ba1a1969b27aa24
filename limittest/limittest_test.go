package limittest_test

import (
	"context"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return headgate.NewMemory(0) })
}

func TestMemoryConcurrency(t *testing.T) {
	limittest.RunConcurrency(t, func(*testing.T) headgate.ConcurrencyStore { return headgate.NewMemoryConcurrency() })
}

// A store that is observed answers as it did.
func TestObserved(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		told := func(_ context.Context, o headgate.Observed) {
			if (o.Outcome == headgate.OutcomeFailed) != (o.Err != nil) || o.Outcome == headgate.OutcomeAllowed && !o.Decision.Allowed() {
				t.Errorf("told %+v", o)
			}
		}
		s, err := headgate.Observe(headgate.NewMemory(0), headgate.Observer{Decided: told, Called: func(context.Context, headgate.Call) {}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
