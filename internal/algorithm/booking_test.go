package algorithm

import (
	"testing"
	"time"
)

// If the clock has stepped back, and another limit of a group makes a request wait, the reset is as
// far from now as the state that it leaves says.
func TestResetOfAGroupThatWaitsAfterTheClockStepsBack(t *testing.T) {
	const second = 1_000_000
	for _, terms := range []Terms{
		{Algorithm: TokenBucket, Capacity: 10, Refill: 1, Every: time.Second},
		{Algorithm: Stepped, Capacity: 10, Refill: 1, Every: time.Second},
	} {
		l := NewRule(terms, "k")
		k, _, _ := l.Take(Account{}, Order{Now: 100 * second, Cost: 3}, true)
		o := Order{Now: 50 * second, Cost: 1, MaxWait: 3600 * second, After: 60 * second}
		k, v, changed := l.Take(k, o, true)
		if !changed || v.Retry != 10*second || v.Reset != 54*second {
			t.Errorf("%+v: %+v (%v); want a start after 10 s and a full bucket after 54", terms,
				v, changed)
		}
		_, seen, _ := l.Take(k, Order{Now: 50 * second}, false)
		if seen.Reset != v.Reset {
			t.Errorf("%+v: a peek says a reset after %d; want %d", terms, seen.Reset, v.Reset)
		}
	}
}
