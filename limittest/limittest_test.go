package limittest_test

import (
	"testing"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

func TestMemory(t *testing.T) {
	limittest.Run(t, func(*testing.T) headgate.Store { return headgate.NewMemory(0) })
}
