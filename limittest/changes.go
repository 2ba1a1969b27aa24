package limittest

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// changes are what must be true when the numbers of a named limit change.
var changes = []check{
	{"never over, while numbers alternate", alternating},
	{"a change gives no fresh bucket and locks no key out", changeIsNoReset},
	{"state belongs to the name, the algorithm and the window", stateOfItsOwn},
	{"a denial and a peek under other numbers charge nothing", deniedChange},
}

var namedChanges = [][2]string{
	{"api=1000/m", "api=10/m"}, {"api=1000/m", "api=1000/m burst 10"},
	{"api=1000/m burst 500", "api=7/h burst 3"}, {"api=1000000/h", "api=1/d"},
	{"api=1000/m", "api=500/m burst 1000"}, {"api=1000/m stepped", "api=10/m stepped"},
	{"api=1000000/d stepped", "api=100/30d stepped"}, {"api=10000/d stepped", "api=1/h stepped"},
	{"api=1000/m fixed-window", "api=10/m fixed-window"},
	{"api=1000/m sliding-window", "api=10/m sliding-window"},
	{"api=1000/m sliding-log", "api=10/m sliding-log"},
}

// changeIsNoReset uses all of a limit and changes its numbers, in both directions: nothing
// fits at once, and all fits as soon as it would have after the same use of the new one.
func changeIsNoReset(t *testing.T, s headgate.Store) {
	for _, pair := range namedChanges {
		for i := range pair {
			before, after := parse(t, pair[i]), parse(t, pair[1-i])
			r := headgate.Request{Key: fmt.Sprint(before, after), Limit: before, At: epoch}
			r.Cost = before.Capacity()
			take(t, s, r)
			r.Limit, r.Cost = after, after.Capacity()
			d := take(t, s, r)
			if after.Refill() > 0 && d.Remaining > 0 || d.Allowed() {
				t.Errorf("all of %s used, then %s: %s; want nothing left", before, after,
					describe(d))
			}
			full := 2 * after.Period()
			if after.Refill() > 0 {
				full = after.Period() * time.Duration(ceilDiv(after.Capacity(), after.Refill()))
			}
			if d.RetryAfter > full {
				t.Errorf("all of %s used, then %s: %s; want at most %s", before, after, describe(d),
					full)
			}
			r.At = epoch.Add(d.RetryAfter)
			if d := take(t, s, r); !d.Allowed() {
				t.Errorf("%s after %s: denied after the wait: %s", after, before, describe(d))
			}
		}
	}
}

// stateOfItsOwn uses all of a limit, and finds another one of the same name unused.
func stateOfItsOwn(t *testing.T, s headgate.Store) {
	texts := []string{
		"api=5/m", "api=5/m stepped", "api=5/m fixed-window", "api=5/h fixed-window",
		"api=5/m sliding-window", "api=5/h sliding-window",
		"api=5/m sliding-log", "api=5/h sliding-log",
		"other=5/m", "5/m",
	}
	ids := map[string]string{}
	for _, text := range texts {
		r := headgate.Request{Key: "own", Limit: parse(t, text), Cost: 5, At: epoch}
		if d := take(t, s, r); !d.Allowed() {
			t.Errorf("%s shares the state of another limit: %s", text, describe(d))
		}
		if other, ok := ids[r.Limit.ID()]; ok {
			t.Errorf("%s and %s have the ID %s", text, other, r.Limit.ID())
		}
		ids[r.Limit.ID()] = text
	}
}

// deniedChange asks under other numbers, and finds the state as it was.
func deniedChange(t *testing.T, s headgate.Store) {
	books := books(t, s)
	for _, pair := range namedChanges {
		large, small := parse(t, pair[0]), parse(t, pair[1])
		ask := func(l headgate.Limit, cost int64, wait time.Duration) headgate.Decision {
			if !books {
				wait = 0
			}
			key := fmt.Sprint("denied ", large, small)
			return take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, MaxWait: wait,
				At: epoch})
		}
		ask(large, large.Capacity()-1, 0)
		before := ask(large, 0, 0)
		for range 5 {
			ask(small, 0, 0)
			ask(small, small.Capacity(), 0)
			ask(small, small.Capacity(), time.Microsecond)
			ask(small, small.Capacity()+1, time.Hour)
		}
		if after := ask(large, 0, 0); after != before {
			t.Errorf("%s, denied under %s: %s; want %s", large, small, describe(after),
				describe(before))
		}
	}
}
