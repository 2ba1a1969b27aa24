package limittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// turns are what must be true of grants that are booked ahead, or taken back.
func turns(t *testing.T, open Open) {
	t.Run("agreement", func(t *testing.T) { agreementOfTurns(t, open(t), headgate.NewMemory(0)) })
	t.Run("agreement together", func(t *testing.T) { agreementOfGroups(t, open(t), headgate.NewMemory(0)) })
	runAll(t, open, []check{
		{"the first moments that fit", turnsFit},
		{"taken back as if never granted", takenBack},
		{"together at the latest turn", turnsTogether},
		{"taken back together as if never granted", takenBackTogether},
		{"taken back together, or not at all", allBackOrNone},
		{"nobody goes before a turn", nobodyGoesBefore},
		{"tickets", tickets},
		{"together with a ticket", withTicket},
		{"of too many the first count for good", tooMany},
		{"a refund makes no room at a turn", refundAhead},
		{"a refund has no turn", refundTogether},
	})
}

// booker makes random requests of a sequence that may be booked ahead, held, and taken back.
type booker struct {
	*sequence
	tickets uint64
}

func (b *booker) next() headgate.Request {
	r := b.sequence.next()
	period := b.limit.Period()
	if b.IntN(2) == 0 {
		r.MaxWait = []time.Duration{time.Microsecond, period, 10 * period, 1 << 55}[b.IntN(4)]
	}
	if b.IntN(2) == 0 {
		b.tickets++
		r.Ticket = b.tickets
		r.Hold = []time.Duration{0, 0, period, 10 * period}[b.IntN(4)]
	}
	if b.IntN(5) == 0 && b.tickets > 0 {
		r.Ticket = 1 + b.tickets - min(uint64(b.IntN(20)), b.tickets)
		r.Cost = -1 - b.Int64N(3)
	}
	return r
}

// agreementOfTurns is Agreement for such requests.
func agreementOfTurns(t *testing.T, got, want headgate.Store) {
	eachSequence(t, func(t *testing.T, random *sequence) error {
		random.key += " in turn"
		limits := [2]headgate.Limit{random.limit.Named("agreed"), randomLimit(random.Rand, random.limit.Algorithm()).Named("agreed")}
		random.limit = limits[0]
		b := &booker{sequence: random}
		for i := range perSequence {
			if random.IntN(60) == 0 {
				random.limit = limits[random.IntN(2)]
			}
			if err := agreeInTurn(t, b, got, want); err != nil {
				return fmt.Errorf("request %d: %w", i, err)
			}
		}
		return nil
	})
}

func agreeInTurn(t *testing.T, b *booker, got, want headgate.Store) error {
	r := b.next()
	if b.IntN(20) == 0 {
		return agreeTogether(t, b.sequence, r, got, want)
	}
	g, err := got.Take(t.Context(), r)
	if err != nil {
		return fmt.Errorf("%s: %w", show(r), err)
	}
	w, err := want.Take(t.Context(), r)
	if err != nil {
		return fmt.Errorf("%s: %w", show(r), err)
	}
	if g != w {
		return fmt.Errorf("%s:\n got  %s\n want %s", show(r), describe(g), describe(w))
	}
	return nil
}

var turnLimits = []string{
	"10/s", "7/s burst 3", "1/h burst 2", "10/s stepped", "3/2s burst 7 stepped", "10/s fixed-window", "5/m fixed-window",
	"10/s sliding-window", "30/7s sliding-window", "10/s sliding-log", "5/m sliding-log",
}

// booking is a request that was granted, and its turn.
type booking struct {
	headgate.Request
	turn time.Time
}

const year = 365 * 24 * time.Hour

// bookings asks s for some of key, and gives back some of that.
func bookings(t *testing.T, s headgate.Store, random *rand.Rand, key string, l headgate.Limit, back int) (granted []booking, now time.Time) {
	t.Helper()
	now = epoch
	for i := range 30 {
		r := headgate.Request{Key: key, Limit: l, Cost: 1 + random.Int64N(min(l.Capacity(), 4)), At: now, Ticket: uint64(i + 1), Hold: year}
		if random.IntN(3) > 0 {
			r.MaxWait = year
		}
		if d := take(t, s, r); d.Within(r.MaxWait) {
			granted = append(granted, booking{r, now.Add(d.RetryAfter)})
		}
		now = now.Add(time.Duration(random.Int64N(int64(l.Period())/l.Capacity()*2 + 1))).Truncate(time.Microsecond)
	}
	for range min(back, len(granted)) {
		i := random.IntN(len(granted))
		g := granted[i]
		cost := 1 + random.Int64N(g.Cost)
		take(t, s, headgate.Request{Key: key, Limit: l, Cost: -cost, Ticket: g.Ticket, At: now})
		if granted[i].Cost -= cost; granted[i].Cost == 0 {
			granted = slices.Delete(granted, i, i+1)
		}
	}
	return granted, now
}

// turnsFit asks for the same at the turns: it fits then, and not a microsecond sooner.
func turnsFit(t *testing.T, s headgate.Store) {
	for seed := range uint64(40) {
		for _, text := range turnLimits {
			l := parse(t, text)
			granted, _ := bookings(t, s, rand.New(rand.NewPCG(seed, 0)), fmt.Sprint("booked ", text, seed), l, 0)
			key, last := fmt.Sprint("plain ", text, seed), epoch
			for i, g := range granted {
				before := headgate.Request{Key: key, Limit: l, At: g.turn.Add(-time.Microsecond)}
				if g.turn.After(last) && g.turn.After(g.At) && take(t, s, before).Remaining >= g.Cost {
					t.Fatalf("%s, seed %d: grant %d of %d would have fit before %s", text, seed, i, g.Cost, g.turn)
				}
				last = g.turn
				if !take(t, s, headgate.Request{Key: key, Limit: l, Cost: g.Cost, At: g.turn}).Allowed() {
					t.Fatalf("%s, seed %d: grant %d of %d does not fit at %s", text, seed, i, g.Cost, g.turn)
				}
			}
		}
	}
}

// takenBack compares a key of which some was taken back with one that was only asked for the
// rest.
func takenBack(t *testing.T, s headgate.Store) {
	for seed := range uint64(40) {
		for _, text := range turnLimits {
			l := parse(t, text)
			random := rand.New(rand.NewPCG(seed, 1))
			key, without := fmt.Sprint("some ", text, seed), fmt.Sprint("without ", text, seed)
			granted, now := bookings(t, s, random, key, l, 1+random.IntN(10))
			for _, g := range granted {
				take(t, s, headgate.Request{Key: without, Limit: l, Cost: g.Cost, At: g.At, MaxWait: year})
			}
			for range 3 {
				got := take(t, s, headgate.Request{Key: key, Limit: l, At: now})
				if want := take(t, s, headgate.Request{Key: without, Limit: l, At: now}); got != want {
					t.Fatalf("%s, seed %d: %s; %s if it had never been granted", text, seed, describe(got), describe(want))
				}
				now = now.Add(l.Period() / 3).Truncate(time.Microsecond)
			}
		}
	}
}

// turnsTogether books requests that are granted together, under limits of which now one and now
// the other comes last.
func turnsTogether(t *testing.T, s headgate.Store) {
	second, minute := parse(t, "second=1/s"), parse(t, "minute=3/m fixed-window")
	for i, want := range []time.Duration{0, time.Second, 2 * time.Second, time.Minute, 61 * time.Second, 62 * time.Second, 2 * time.Minute, never} {
		rs := []headgate.Request{
			{Key: "together", Limit: second, Cost: 1, At: epoch, MaxWait: 2 * time.Minute},
			{Key: "together", Limit: minute, Cost: 1, At: epoch, MaxWait: 2 * time.Minute},
		}
		if want == never {
			rs[0].MaxWait = time.Minute
		}
		ds := make([]headgate.Decision, 2)
		if err := s.TakeAll(t.Context(), rs, ds); err != nil {
			t.Fatal(err)
		}
		if want == never {
			if ds[0].RetryAfter != 2*time.Minute+time.Second || ds[1].RetryAfter != 2*time.Minute {
				t.Errorf("refused: %s and %s", describe(ds[0]), describe(ds[1]))
			}
			continue
		}
		if ds[0].RetryAfter != want || ds[1].RetryAfter != want {
			t.Errorf("request %d: turns in %s and %s; want %s", i, ds[0].RetryAfter, ds[1].RetryAfter, want)
		}
	}
}

// never marks the request that is refused.
const never time.Duration = -1

// nobodyGoesBefore asks, without waiting, while a turn is ahead: for more than is left, and
// for what a limit would have left now.
func nobodyGoesBefore(t *testing.T, s headgate.Store) {
	for _, text := range []string{"4/s", "4/s stepped", "4/s fixed-window", "4/s sliding-window", "4/s sliding-log"} {
		l := parse(t, text)
		ask := func(cost int64, after, wait time.Duration) headgate.Decision {
			return take(t, s, headgate.Request{Key: "before " + text, Limit: l, Cost: cost, At: epoch.Add(after), MaxWait: wait})
		}
		ask(2, 0, 0)
		turn := ask(4, 0, year).RetryAfter
		for _, cost := range []int64{0, 1} {
			if d := ask(cost, 0, 0); d.Allowed() || d.Remaining != 0 || d.RetryAfter <= turn {
				t.Errorf("%s: a cost of %d before the turn in %s: %s", text, cost, turn, describe(d))
			}
		}
		if d := ask(1, turn, year); d.RetryAfter <= 0 {
			t.Errorf("%s: at the turn: %s", text, describe(d))
		}
	}
}

// tickets are asked for, taken back in parts, and forgotten when their time is over.
func tickets(t *testing.T, s headgate.Store) {
	for _, text := range []string{"4/s", "4/s stepped", "4/s fixed-window", "4/s sliding-window", "4/s sliding-log"} {
		l := parse(t, text)
		ask := func(cost int64, ticket uint64, after time.Duration) headgate.Decision {
			r := headgate.Request{Key: "tickets " + text, Limit: l, Cost: cost, Ticket: ticket, At: epoch.Add(after)}
			if cost > 0 {
				r.MaxWait, r.Hold = year, time.Minute
			}
			return take(t, s, r)
		}
		ask(4, 1, 0)
		turn := ask(4, 2, 0).RetryAfter
		for _, c := range []struct {
			cost   int64
			ticket uint64
			after  time.Duration
			retry  time.Duration
		}{
			{0, 1, 0, 0}, {0, 2, 0, turn}, {0, 2, time.Millisecond, turn - time.Millisecond}, {0, 3, 0, headgate.Never},
			{-3, 1, 0, 0}, {-4, 3, 0, headgate.Never}, {-1, 1, 0, 0}, {-1, 1, 0, headgate.Never},
			{0, 2, 0, 0}, // which comes at once now
			{0, 2, time.Minute - time.Microsecond, 0}, {0, 2, 2 * time.Minute, headgate.Never}, {-1, 2, 2 * time.Minute, headgate.Never},
		} {
			if d := ask(c.cost, c.ticket, c.after); d.RetryAfter != c.retry {
				t.Errorf("%s: a cost of %d by ticket %d after %s: %s; want retry after %s", text, c.cost, c.ticket, c.after, describe(d), c.retry)
			}
		}
	}
}

// withTicket takes and gives back on condition that a grant of another limit may still be
// taken back.
func withTicket(t *testing.T, s headgate.Store) {
	condition := parse(t, "condition=10/s")
	for _, text := range turnLimits {
		l := parse(t, text)
		key := "with a ticket " + text
		take(t, s, headgate.Request{Key: key, Limit: condition, Cost: 1, Ticket: 1, Hold: time.Second, At: epoch})
		take(t, s, headgate.Request{Key: key, Limit: l, Cost: 1, At: epoch})
		for _, c := range []struct {
			cost   int64
			ticket uint64
			after  time.Duration
			change int64 // of what remains
		}{
			{1, 1, 0, -1}, {1, 2, 0, 0}, {-1, 2, 0, 0}, {-1, 1, time.Second - time.Microsecond, 1}, {-1, 1, time.Second, 0}, {1, 1, time.Second, 0},
		} {
			now := epoch.Add(c.after)
			before := take(t, s, headgate.Request{Key: key, Limit: l, At: now}).Remaining
			rs := []headgate.Request{{Key: key, Limit: l, Cost: c.cost, At: now}, {Key: key, Limit: condition, Ticket: c.ticket, At: now}}
			ds := make([]headgate.Decision, 2)
			if err := s.TakeAll(t.Context(), rs, ds); err != nil {
				t.Fatal(err)
			}
			after := take(t, s, headgate.Request{Key: key, Limit: l, At: now}).Remaining
			if full := l.Capacity(); after != min(before+c.change, full) || ds[1].Allowed() != (c.change != 0) {
				t.Errorf("%s: %d with ticket %d after %s: %d remain of %d, %s; want a change of %d", text, c.cost, c.ticket, c.after, after, before, describe(ds[1]), c.change)
			}
		}
	}
}

// tooMany holds one more than can be taken back.
func tooMany(t *testing.T, s headgate.Store) {
	for text, kept := range map[string]uint64{"1000000/d": 1024, "1000000/d fixed-window": 1024, "1000/d sliding-log": 1024, "60000/d sliding-log": 18} {
		l := parse(t, text)
		for i := range kept + 6 {
			take(t, s, headgate.Request{Key: "many " + text, Limit: l, Cost: 1 - int64(i%2) + 1, Ticket: i + 1, Hold: year, MaxWait: year, At: epoch.Add(time.Duration(i) * time.Microsecond)})
		}
		for ticket, known := range map[uint64]bool{1: false, 6: false, 7: true, kept + 6: true} {
			d := take(t, s, headgate.Request{Key: "many " + text, Limit: l, Cost: -1, Ticket: ticket, At: epoch.Add(time.Second)})
			if d.Allowed() != known {
				t.Errorf("%s: ticket %d of %d: %s", text, ticket, kept+6, describe(d))
			}
		}
	}
}

// refundAhead gives back while a turn is ahead: what was taken before it makes no room at it.
func refundAhead(t *testing.T, s headgate.Store) {
	for _, text := range []string{"10/m fixed-window", "10/m sliding-log", "10/m sliding-window", "10/m stepped"} {
		l := parse(t, text)
		ask := func(cost int64) headgate.Decision {
			return take(t, s, headgate.Request{Key: "refund " + text, Limit: l, Cost: cost, MaxWait: year, At: epoch.Add(time.Second)})
		}
		ask(10)
		turn := ask(10).RetryAfter
		ask(-10)
		if next := ask(10).RetryAfter; next <= turn {
			t.Errorf("%s: after a refund another turn is in %s; that before was in %s", text, next, turn)
		}
	}
}

// refundTogether gives back, at once, together with a grant whose turn is ahead.
func refundTogether(t *testing.T, s headgate.Store) {
	for _, text := range turnLimits {
		l, minute := parse(t, text), parse(t, "minute=1/m")
		rs := []headgate.Request{
			{Key: "refund with " + text, Limit: minute, Cost: 1, At: epoch, MaxWait: year},
			{Key: "refund with " + text, Limit: l, Cost: -1, At: epoch, MaxWait: year},
		}
		take(t, s, headgate.Request{Key: rs[0].Key, Limit: minute, Cost: 1, At: epoch})
		take(t, s, headgate.Request{Key: rs[0].Key, Limit: l, Cost: l.Capacity(), At: epoch})
		if err := s.TakeAll(t.Context(), rs, make([]headgate.Decision, len(rs))); err != nil {
			t.Fatal(err)
		}
		if d := take(t, s, headgate.Request{Key: rs[0].Key, Limit: l, Cost: 1, At: epoch}); !d.Allowed() {
			t.Errorf("%s: after a refund together with a turn in a minute: %s; want a grant at once", text, describe(d))
		}
	}
}
