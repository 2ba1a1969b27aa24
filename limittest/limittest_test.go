package limittest_test

import (
	"context"
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
	"github.com/headgate/headgate/observe"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return headgate.NewMemory() })
}

// A store that is observed answers as it did.
func TestObserved(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		decided := func(_ context.Context, e observe.Event) {
			failed, allowed := e.Outcome == observe.Failed, e.Outcome == observe.Allowed
			if failed != (e.Err != nil) || allowed && !e.Decision.Allowed() {
				t.Errorf("reported %+v", e)
			}
		}
		s, err := observe.New(headgate.NewMemory(), observe.Observer{
			Decided: decided, Called: func(context.Context, observe.Call) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s
	})
}
