package limittest

import (
	"fmt"
	"math"
	"math/rand/v2"
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
		{"api=1000000/h", "api=1/d"},
		{"api=1000/m", "api=500/m burst 1000"},
		{"api=1000/m stepped", "api=10/m stepped"},
		{"api=1000/m stepped", "api=1000/m burst 10 stepped"},
		{"api=1000000/d stepped", "api=100/30d stepped"},
		{"api=10000/d stepped", "api=1/h stepped"},
		{"api=1000/m fixed-window", "api=10/m fixed-window"},
		{"api=1000/h fixed-window", "api=10/m fixed-window"},
		{"api=1000/m sliding-window", "api=10/m sliding-window"},
		{"api=1000/h sliding-window", "api=10/m sliding-window"},
		{"api=1000/m sliding-log", "api=10/m sliding-log"},
		{"api=1000/h sliding-log", "api=10/m sliding-log"},
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
		d := take1(small, small.Capacity(), time.Millisecond)
		if d.Allowed() || d.RetryAfter > 2*small.Period() {
			t.Errorf("%s after %s: %s; want a wait of at most two periods", texts[1], texts[0], describe(d))
		} else if d := take1(small, small.Capacity(), time.Millisecond+d.RetryAfter); !d.Allowed() {
			t.Errorf("%s after %s: refused after the wait it was told: %s", texts[1], texts[0], describe(d))
		}
	}
}

// alternatingInTime lets time pass while the numbers take turns, with refunds between
// them: over every span, what is granted, less what is given back, stays within what the
// more generous limit alone allows, and the key is never starved of what the other gives.
func alternatingInTime(t *testing.T, s headgate.Store) {
	for _, texts := range [][2]string{
		{"api=1000/h burst 1000", "api=1000/h burst 10"},
		{"api=1000/m", "api=1000/m burst 10"},
		{"api=1000/m", "api=10/m"},
		{"api=1000/m stepped", "api=1000/m burst 10 stepped"},
		{"api=1000/m burst 1000 stepped", "api=10/s burst 1000 stepped"},
		{"api=1000/m stepped", "api=10/s burst 100 stepped"},
		{"api=1000000/h", "api=1/d"},
		{"api=1000/m", "api=500/m burst 1000"},
		{"api=100000/d", "api=10/s burst 100"},
		{"api=10000/d stepped", "api=1/h stepped"},
	} {
		for seed := range uint64(8) {
			alternateInTime(t, s, parse(t, texts[0]), parse(t, texts[1]), seed)
		}
	}
}

func alternateInTime(t *testing.T, s headgate.Store, large, small headgate.Limit, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	key := fmt.Sprint(large, small, seed)
	var at time.Duration
	var granted int64
	for range 300 {
		l := large
		if random.IntN(2) == 0 {
			l = small
		}
		cost := 1 + random.Int64N(l.Capacity())
		d := take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, At: epoch.Add(at)})
		if d.Allowed() {
			granted += cost
			if random.IntN(4) == 0 { // and given back by whom it was not given to
				granted -= cost
				take(t, s, headgate.Request{Key: key, Limit: large, Cost: -cost, At: epoch.Add(at)})
			}
		}
		if most := mostIn(large, small, at); granted > most {
			t.Errorf("%s and %s in turn: %d granted in %s; want at most %d", large, small, granted, at, most)
			return
		}
		at += time.Duration(random.Int64N(int64(3 * time.Second)))
	}
	if seed > 0 {
		return
	}
	// Nobody is starved: in an hour of asking each second, in turn, more than the
	// slower of the two gives in a quarter of it.
	starved := granted
	for second := range 3600 {
		l := large
		if second%2 == 0 {
			l = small
		}
		if take(t, s, headgate.Request{Key: key, Limit: l, Cost: 1, At: epoch.Add(at + time.Duration(second)*time.Second)}).Allowed() {
			starved--
		}
	}
	if got, least := granted-starved, min(mostIn(small, small, time.Hour/4)-small.Capacity(), 1000); got < least {
		t.Errorf("%s and %s in turn: %d granted in an hour; want at least %d", large, small, got, least)
	}
}

// mostIn is the most that a bucket of the larger capacity and the faster refill of the
// two grants in a span, a whole step of each included.
func mostIn(a, b headgate.Limit, span time.Duration) int64 {
	var most int64
	for _, l := range []headgate.Limit{a, b} {
		periods := span.Seconds() / l.Period().Seconds()
		if l.Algorithm() == headgate.AlgorithmStepped {
			periods = math.Floor(periods) + 1
		}
		most = max(most, int64(periods*float64(l.Refill()))+1)
	}
	return most + max(a.Capacity(), b.Capacity())
}

// longWindows puts versions with windows of different lengths in turn: the longer one
// counts what was granted under both, and grants no more than is left of its own count.
func longWindows(t *testing.T, s headgate.Store) {
	for _, texts := range [][2]string{
		{"api=100/h fixed-window", "api=10/m fixed-window"},
		{"api=100/m fixed-window", "api=50/7s fixed-window"},
		{"api=100/h sliding-window", "api=10/m sliding-window"},
		{"api=100/m sliding-window", "api=50/7s sliding-window"},
		{"api=100/h sliding-log", "api=10/m sliding-log"},
		{"api=100/m sliding-log", "api=50/7s sliding-log"},
		{"api=20/h sliding-log", "api=90/m sliding-log"},
	} {
		for seed := range uint64(8) {
			longWindow(t, s, parse(t, texts[0]), parse(t, texts[1]), seed)
		}
	}
}

func longWindow(t *testing.T, s headgate.Store, long, short headgate.Limit, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 2))
	key := fmt.Sprint(long, short, seed)
	all := newModel(long)
	at := epoch.UnixMicro()
	ask := func(l headgate.Limit, cost int64) bool {
		return take(t, s, headgate.Request{Key: key, Limit: l, Cost: cost, At: time.UnixMicro(at)}).Allowed()
	}
	for range 300 {
		l, cost := long, 1+random.Int64N(3)
		if random.IntN(2) == 0 && !all.pristine(at) { // of a key at first sight nothing is known, not even its versions
			l = short
		}
		if random.IntN(8) == 0 && long.Algorithm() != headgate.AlgorithmSlidingLog { // the shorter log may have dropped what counts again then
			cost = -cost
		}
		granted, fits := ask(l, cost), cost < 0 || all.fits(at, cost)
		if l == long && granted && !fits {
			t.Errorf("%s grants %d that %s alone would not, beside %s", key, cost, long, short)
			return
		}
		if l == long && !granted && fits {
			t.Errorf("%s refuses %d that %s alone would not, beside %s", key, cost, long, short)
			return
		}
		if granted {
			all.charge(at, cost)
		}
		at += random.Int64N(long.Period().Microseconds() / 50)
	}
}
