package limittest_test

import (
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

func TestMemoryConcurrency(t *testing.T) {
	limittest.RunConcurrency(t, func(*testing.T) headgate.ConcurrencyStore { return headgate.NewMemoryConcurrency() })
}
