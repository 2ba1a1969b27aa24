package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// What a ledger is to find is done to it: a token too many, and a refusal too early.
func TestLedgerFinds(t *testing.T) {
	for _, c := range []struct {
		limit headgate.Limit
		wait  time.Duration // until 10 more tokens fit
	}{
		{headgate.PerSecond(10).Burst(100), time.Second},
		{headgate.FixedWindow(100, 10*time.Second), 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &ledger{key: "k", limit: c.limit, ideal: headgate.NewMemory()}
			expect := func(what string, over, short int64) {
				t.Helper()
				if k.over != over || k.short != short {
					t.Errorf("%s, %s: %d over, %d short; want %d, %d", c.limit, what, k.over, k.short, over, short)
				}
			}
			k.decide(t.Context(), 69, true)
			k.decide(t.Context(), 1, false)
			expect("refused", 0, 30)
			k.decide(t.Context(), 1, true)
			k.lose(5)
			k.decide(t.Context(), 1, false)
			expect("refused when less was left", 0, 30)
			k.decide(t.Context(), 30, true)
			expect("full", 0, 30)
			k.decide(t.Context(), 1, true)
			expect("a token over", 1, 30)
			time.Sleep(c.wait + 100*time.Millisecond)
			k.decide(t.Context(), 10, true)
			expect("later", 1, 30)
			// The ideal granted what was refused, and so had less for the 30.
			if k.granted != 111 || k.could != 83 || k.waste != 5 || k.refused != 2 {
				t.Errorf("%s: %d granted, %d by the ideal, %d lost, %d refused", c.limit, k.granted, k.could, k.waste, k.refused)
			}
		})
	}
}
