package limittest

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// alternating puts the numbers of one named limit in turn, as a fleet does while it is
// half way through a change. What a key is granted in all stays within the larger of
// them, as if that alone had been there; and when the change is through, a caller waits
// no longer than for a bucket or a window.
func alternating(t *testing.T, s headgate.Store) {
	for _, texts := range [][2]string{
		{"api=1000/m", "api=10/m"},
		{"api=1000/m", "api=1000/m burst 10"},
		{"api=1000/m burst 500", "api=7/h burst 3"},
		{"api=1000/m stepped", "api=10/m stepped"},
		{"api=1000/m stepped", "api=1000/m burst 10 stepped"},
		{"api=1000/m fixed-window", "api=10/m fixed-window"},
		{"api=1000/m sliding-window", "api=10/m sliding-window"},
		{"api=1000/m sliding-log", "api=10/m sliding-log"},
	} {
		large, small := parse(t, texts[0]), parse(t, texts[1])
		key, granted := texts[0]+texts[1], int64(0)
		take1 := func(l headgate.Limit, cost int64, at time.Duration) headgate.Decision {
			d := take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, At: epoch.Add(at)})
			if d.Allowed() {
				granted += cost
			}
			return d
		}
		for turn := range 100 {
			at := time.Duration(turn) * time.Microsecond
			for range 10 {
				take1(large, 90, at)
				take1(small, 5, at)
				take1(small, 1, at)
			}
		}
		if most := large.Capacity(); granted > most {
			t.Errorf("%s and %s in turn: %d granted in 100µs; want at most %d", texts[0], texts[1], granted, most)
		}
		d := take1(small, 1, time.Millisecond)
		if d.Allowed() || d.RetryAfter > 2*small.Period() {
			t.Errorf("%s after %s: %s; want a wait of at most two periods", texts[1], texts[0], describe(d))
		} else if d := take1(small, 1, time.Millisecond+d.RetryAfter); !d.Allowed() {
			t.Errorf("%s after %s: refused after the wait it was told: %s", texts[1], texts[0], describe(d))
		}
	}
}
