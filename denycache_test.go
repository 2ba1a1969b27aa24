package headgate_test

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/limittest"
)

func TestDenyCacheIsAStore(t *testing.T) {
	limittest.Run(t, func(t *testing.T) headgate.Store {
		return newDenyCache(t, headgate.NewMemory(0), headgate.DenyCacheOptions{MaxTrust: time.Hour})
	})
}

func newDenyCache(t testing.TB, s headgate.Store, o headgate.DenyCacheOptions) *headgate.DenyCache {
	t.Helper()
	c, err := headgate.NewDenyCache(s, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
