package limittest_test

import (
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
