package limittest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// lateRefunds are what must be true of refunds that name a start that has come.
var lateRefunds = []check{
	{"a late refund gives back what its grant holds", heldRefunds},
	{"calls that hang over the end of a window", hangingCalls},
	{"never over, with late refunds", neverOverLate},
}

// withCalendar are limits of 10 in 10 s, and of 10 in a day. The log has a thousand times as many,
// so that one grant takes several entries in memory.
var withCalendar = []string{"10/10s", "10/10s stepped", "10/10s fixed-window",
	"10/10s sliding-window", "10000/10s sliding-log", "10/day tz UTC"}

// heldRefunds refunds 4 of a grant of 6 at several times after it, in tenths of a period, and looks
// at what remains. A grant of 2 comes after it, in each case, and a calendar has a period of a day.
func heldRefunds(t *testing.T, s headgate.Store) {
	for _, c := range []struct {
		at        int64    // of the grant
		other     int64    // grant
		refund    int64    // and when it is
		remaining [6]int64 // after the refund
	}{
		{1, 3, 5, [6]int64{10, 6, 6, 6, 6, 6}},     // in its window, and a full bucket
		{1, 3, 9, [6]int64{10, 6, 6, 6, 6, 6}},     // at the end of the window
		{1, 8, 10, [6]int64{10, 6, 10, 6, 6, 10}},  // in the next one: 4 x 10/10
		{1, 8, 15, [6]int64{10, 10, 10, 8, 8, 10}}, // 4 x 5/10
		{1, 12, 15, [6]int64{10, 10, 8, 7, 8, 8}},  // the other is in the next one: 2 + 2 x 5/10
		{1, 12, 19, [6]int64{10, 10, 8, 7, 8, 8}},  // 2 + 2 x 1/10
		{1, 22, 25, [6]int64{10, 10, 8, 8, 8, 8}},  // the one after that
	} {
		for i, text := range withCalendar {
			l := parse(t, text)
			unit, n := l.Period()/10, l.Capacity()/10
			if l.Algorithm() == headgate.AlgorithmCalendarWindow {
				unit = 24 * time.Hour / 10
			}
			at := func(n int64) time.Time { return epoch.Add(time.Duration(n) * unit) }
			r := headgate.Request{Key: fmt.Sprint("held ", text, c), Limit: l, Cost: 6 * n,
				At: at(c.at), Start: new(time.Time)}
			if take(t, s, r); r.Start.IsZero() {
				return // a store that does not name starts
			}
			take(t, s, headgate.Request{Key: r.Key, Limit: l, Cost: 2 * n, At: at(c.other)})
			back := r.Refund(4 * n)
			back.At = at(c.refund)
			if d := take(t, s, back); !d.Allowed() || d.Remaining != n*c.remaining[i] {
				t.Errorf("%s, %+v: %s; want %d", text, c, describe(d), n*c.remaining[i])
			}
		}
	}
}

// hangingCalls reserves all of a limit of 1000 a minute just before a window ends, uses all of it
// in the window after the next, and then refunds the first, of which nothing was used.
func hangingCalls(t *testing.T, s headgate.Store) {
	for _, text := range []string{"1000/m", "1000/m stepped", "1000/m fixed-window",
		"1000/m sliding-window", "1000/m sliding-log", "1000/day tz UTC"} {
		l := parse(t, text)
		minute := time.Minute
		if l.Algorithm() == headgate.AlgorithmCalendarWindow {
			minute = 24 * time.Hour
		}
		ask := func(cost int64, at time.Time) (headgate.Request, bool) {
			r := headgate.Request{Key: "hang " + text, Limit: l, Cost: cost, At: at,
				Start: new(time.Time)}
			return r, take(t, s, r).Allowed()
		}
		var calls []headgate.Request
		for range 10 {
			r, _ := ask(100, epoch.Add(minute-time.Second))
			calls = append(calls, r)
		}
		if calls[0].Start.IsZero() {
			return // a store that does not name starts
		}
		used, later := int64(0), epoch.Add(2*minute)
		for i := range 40 {
			if i >= 10 && i < 20 {
				back := calls[i-10].Refund(100)
				back.At = later
				take(t, s, back)
			}
			if _, ok := ask(100, later); ok {
				used += 100
			}
		}
		want := int64(1000)
		if l.Refill() > 0 {
			want = 2000 // its bound: what is refunded comes on top
		}
		if used != want {
			t.Errorf("%s: %d were used in the second window; want %d", text, used, want)
		}
	}
}

// neverOverLate grants at random and refunds parts of earlier grants, some booked ahead, as if
// these were never granted. What was not refunded never exceeds the definition.
func neverOverLate(t *testing.T, s headgate.Store) {
	if !books(t, s) {
		return
	}
	texts := []string{"20/m fixed-window", "7/s fixed-window", "20/m sliding-window",
		"7/s sliding-window", "20/m sliding-log", "7/s sliding-log", "20/day tz Europe/Zurich"}
	eachSeed(t, uint64(10*len(texts)), func(seed uint64) error {
		text := texts[seed%uint64(len(texts))]
		l := parse(t, text)
		random, now := rand.New(rand.NewPCG(seed, 8)), epoch.UnixMicro()
		var kept []headgate.Request // the grants, less what was refunded
		for range 150 {
			now += random.Int64N(l.Period().Microseconds() / 4)
			r := headgate.Request{Key: fmt.Sprint("late ", text, seed), Limit: l,
				Cost: 1 + random.Int64N(l.Capacity()/2), Start: new(time.Time),
				At: time.UnixMicro(now)}
			if random.IntN(4) == 0 {
				r.MaxWait = l.Period()
			}
			if n := random.IntN(3); n == 0 && len(kept) > 0 {
				i := len(kept) - 1 - random.IntN(min(len(kept), 8))
				if of := &kept[i]; !of.Start.After(r.At) && of.Cost > 0 {
					r = of.Refund(1 + random.Int64N(of.Cost))
					r.At, of.Cost = time.UnixMicro(now), of.Cost+r.Cost
				}
			}
			d, err := s.Take(t.Context(), r)
			if err != nil {
				return err
			}
			if r.Cost > 0 && d.Within(r.MaxWait) {
				kept = append(kept, r)
				if err := overAt(l, kept, r.Start.UnixMicro()); err != nil {
					return fmt.Errorf("%s: %w", text, err)
				}
			}
		}
		return nil
	})
}

// overAt returns an error if grants exceed the definition of l at t, when the last of them starts.
func overAt(l headgate.Limit, kept []headgate.Request, t int64) error {
	s := state{at: t}
	for _, r := range kept {
		if at := r.Start.UnixMicro(); r.Cost > 0 {
			s.grants = append(s.grants, grant{at, r.Cost})
			if at >= windowStart(l, t) {
				s.used += r.Cost // as a calendar counts
			}
		}
	}
	if left := s.left(l, t); left < 0 {
		return fmt.Errorf("over: %d of %d at %d", l.Capacity()-left, l.Capacity(), t)
	}
	return nil
}
