package headgate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

var turnLimits = []string{
	"10/s", "7/s burst 3", "100/m burst 10", "3/s burst 1", "1/h burst 2",
	"10/s stepped", "3/2s burst 7 stepped",
	"10/s fixed-window", "5/m fixed-window", "1/s fixed-window",
	"10/s sliding-window", "5/m sliding-window", "30/7s sliding-window",
	"10/s sliding-log", "5/m sliding-log", "1/s sliding-log",
}

// asked is a request that was granted, and its turn.
type asked struct {
	Request
	turn time.Time
}

const longest = time.Hour * 24 * 365

// turnWalk asks for random things of one key, and calls check after each step.
type turnWalk struct {
	*testing.T
	random  *rand.Rand
	memory  *Memory
	limit   Limit
	now     time.Time
	granted []asked
	tickets uint64
}

func newTurnWalk(t *testing.T, seed uint64) *turnWalk {
	random := rand.New(rand.NewPCG(seed, 7))
	return &turnWalk{T: t, random: random, memory: NewMemory(16), limit: must(ParseLimit(turnLimits[seed%uint64(len(turnLimits))])), now: midnight}
}

func (w *turnWalk) take(r Request) {
	w.Helper()
	r.Key, r.At, r.Limit = "k", w.now, w.limit
	d := must(w.memory.Take(w.Context(), r))
	if d.Within(r.MaxWait) && r.Cost > 0 {
		w.granted = append(w.granted, asked{r, w.now.Add(d.RetryAfter)})
	}
}

// ask books a random cost, or asks for it now.
func (w *turnWalk) ask() {
	r := Request{Cost: 1 + w.random.Int64N(min(w.limit.Capacity(), 4))}
	if w.random.IntN(3) > 0 {
		r.MaxWait = []time.Duration{time.Second, longest}[w.random.IntN(2)]
	}
	if w.random.IntN(2) == 0 {
		w.tickets++
		r.Ticket, r.Hold = w.tickets, longest
	}
	w.take(r)
}

// pass lets some time go by, about as much as a token takes to come.
func (w *turnWalk) pass() {
	each := w.limit.Period() / time.Duration(max(w.limit.Refill(), w.limit.Capacity()))
	w.now = w.now.Add(time.Duration(w.random.Int64N(int64(each*3))) * time.Duration(w.random.IntN(3))).Truncate(time.Microsecond)
}

// A turn is the first moment at which the request fits after all that came before it: the
// same requests are granted at their turns by a store that books nothing, and not a
// microsecond sooner.
func TestTurnsAreTheFirstMomentsThatFit(t *testing.T) {
	booked := 0
	for seed := range uint64(often(800)) {
		w := newTurnWalk(t, seed)
		for range 60 {
			w.ask()
			w.pass()
		}
		plain := NewMemory(16)
		last := midnight
		for i, g := range w.granted {
			r := Request{Key: "k", Limit: w.limit, Cost: g.Cost, At: g.turn.Add(-time.Microsecond)}
			if earliest := maxTime(last, g.At); g.turn.After(earliest) {
				booked++
				if d := must(plain.Take(t.Context(), Request{Key: "k", Limit: w.limit, At: r.At})); d.Remaining >= g.Cost {
					t.Fatalf("seed %d, %s: grant %d of %d would have fit before %s", seed, w.limit, i, g.Cost, g.turn)
				}
			}
			if g.turn.Before(last) {
				t.Fatalf("seed %d, %s: grant %d has its turn before the one before it", seed, w.limit, i)
			}
			if r.At, last = g.turn, g.turn; !must(plain.Take(t.Context(), r)).Allowed() {
				t.Fatalf("seed %d, %s: grant %d of %d does not fit at %s", seed, w.limit, i, g.Cost, g.turn)
			}
		}
	}
	if booked < often(5000) {
		t.Errorf("only %d were booked ahead: this tells little", booked)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// What is taken back leaves the state exactly as if it had never been granted, whatever was
// granted after it, and whenever it is taken back.
func TestTakingBackLeavesNothing(t *testing.T) {
	taken := 0
	for seed := range uint64(often(1600)) {
		w := newTurnWalk(t, seed)
		for step := range 80 {
			switch w.random.IntN(4) {
			case 0:
				taken += w.takeBack()
				w.sameWithout(seed, step)
			case 1:
				w.pass()
			default:
				w.ask()
			}
		}
	}
	if taken < often(10_000) {
		t.Errorf("only %d were taken back: this tells little", taken)
	}
}

// takeBack gives back a random grant, or a part of it.
func (w *turnWalk) takeBack() int {
	var held []int
	for i, g := range w.granted {
		if g.Ticket != 0 {
			held = append(held, i)
		}
	}
	if len(held) == 0 {
		return 0
	}
	i := held[w.random.IntN(len(held))]
	g := &w.granted[i]
	cost := 1 + w.random.Int64N(g.Cost)
	w.take(Request{Cost: -cost, Ticket: g.Ticket})
	if g.Cost -= cost; g.Cost == 0 {
		w.granted = slices.Delete(w.granted, i, i+1)
	}
	return 1
}

// sameWithout compares the state with that of a store that was asked only for what is left.
func (w *turnWalk) sameWithout(seed uint64, step int) {
	w.Helper()
	without := NewMemory(16)
	for _, g := range w.granted {
		g.Ticket, g.Hold, g.MaxWait = 0, 0, longest
		must(without.Take(w.Context(), g.Request))
	}
	for _, cost := range []int64{0, 1, w.limit.Capacity()} {
		r := Request{Key: "k", Limit: w.limit, Cost: cost, At: w.now}
		if cost > 0 {
			r.Cost = 0
			r.At = w.now.Add(time.Duration(w.random.Int64N(int64(w.limit.Period()))))
		}
		if got, want := must(w.memory.Take(w.Context(), r)), must(without.Take(w.Context(), r)); got != want {
			w.Fatalf("seed %d, step %d, %s at %s: %+v; %+v without what was taken back", seed, step, w.limit, r.At, got, want)
		}
	}
}
