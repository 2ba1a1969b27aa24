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

// Requests that say their time go through a Lease.
func TestLease(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		l, err := headgate.NewLease(headgate.NewMemory(0), headgate.LeaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return l
	})
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
