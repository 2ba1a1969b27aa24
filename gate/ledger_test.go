package gate

import (
	"math/rand/v2"
	"testing"
)

// TestLedgerFindsTheFirstSpan compares the ledger with an array of moments, for random bookings and
// passes.
func TestLedgerFindsTheFirstSpan(t *testing.T) {
	const end, span = 300, 20
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var l ledger
		var free [end + span]int64
		add := func(from, until, n int64) {
			l.add(from, until, n)
			for at := from; at < until; at++ {
				free[at] += n
			}
		}
		first := func(now, n int64) (int64, bool) {
			held := int64(0)
			for at := now; at < end+span; at++ {
				if held++; free[at] < n {
					held = 0
				}
				if held == span {
					return at - span + 1, true
				}
			}
			return 0, false
		}
		for now := int64(0); now < end/2; now += r.Int64N(8) {
			l.forget(now)
			from := now + r.Int64N(60)
			add(from, from+span+r.Int64N(10)-4, r.Int64N(3)+1)
			n := r.Int64N(4) + 1
			at, ok := l.earliest(now, n, span)
			want, found := first(now, n)
			if ok != found || ok && at != want {
				t.Fatalf("%d tokens from %d on: %d, %v; want %d, %v", n, now, at, ok, want, found)
			}
			if ok && r.IntN(2) == 0 {
				add(at, at+span, -n)
			}
		}
	}
}
