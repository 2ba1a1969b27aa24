package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
)

// What a ledger is to find is done to it: a token too many, a refusal too early, and one that what was
// lost explains.
func TestLedgerFinds(t *testing.T) {
	for _, c := range []struct {
		limit headgate.Limit
		wait  time.Duration // until 10 more tokens fit
	}{
		{headgate.PerSecond(10).Burst(100), time.Second},
		{headgate.FixedWindow(100, 10*time.Second), 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			k := &ledger{key: "k", limit: c.limit, slack: 30, ideal: headgate.NewMemory(0)}
			expect := func(what string, over, short, tooFar int64) {
				t.Helper()
				if k.over != over || k.short != short || k.tooFar != tooFar {
					t.Errorf("%s, %s: %d over, %d short, %d too far; want %d, %d, %d", c.limit, what, k.over, k.short, k.tooFar, over, short, tooFar)
				}
			}
			k.decide(t.Context(), 69, true)
			k.decide(t.Context(), 1, false)
			expect("refused as allowed", 0, 30, 0)
			k.decide(t.Context(), 1, true)
			k.lose(5)
			k.slack = 24
			k.decide(t.Context(), 1, false)
			expect("refused for what was lost", 0, 30, 0)
			k.slack = 23
			k.decide(t.Context(), 1, false)
			expect("refused for nothing", 0, 30, 1)
			k.decide(t.Context(), 30, true)
			expect("full", 0, 30, 1)
			k.decide(t.Context(), 1, true)
			expect("a token over", 1, 30, 1)
			time.Sleep(c.wait + 100*time.Millisecond)
			k.decide(t.Context(), 10, true)
			expect("later", 1, 30, 1)
			// The ideal granted what was refused, and so had less for the 30.
			if k.granted != 111 || k.could != 84 || k.waste != 5 || k.refused != 3 {
				t.Errorf("%s: %d granted, %d by the ideal, %d lost, %d refused", c.limit, k.granted, k.could, k.waste, k.refused)
			}
		})
	}
}
