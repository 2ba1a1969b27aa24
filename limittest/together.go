package limittest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// grouped is a history of one key under several limits.
type grouped struct {
	*rand.Rand
	*testing.T
	store   headgate.Store
	key     string
	limits  []headgate.Limit
	now     time.Time
	granted []grantedTogether
	tickets uint64
	back    int // how many were taken back
}

// grantedTogether is requests that were granted in one call.
type grantedTogether struct {
	rs      []headgate.Request
	coupled bool // they have one turn, whatever becomes of those before them
}

// togetherLimits hold at least as much as is taken back at once.
var togetherLimits = slices.DeleteFunc(slices.Clone(turnLimits), func(text string) bool { return text == "1/h burst 2" })

// histories is how many there are of two limits, and of three.
func histories() uint64 { return uint64(max(ops()/1500, 4)) }

func newGrouped(t *testing.T, s headgate.Store, seed uint64) *grouped {
	t.Helper()
	g := &grouped{Rand: rand.New(rand.NewPCG(seed, 2)), T: t, store: s, key: fmt.Sprint("grouped ", seed), now: epoch}
	for i := range 2 + seed%2 {
		l := parse(t, togetherLimits[g.IntN(len(togetherLimits))])
		g.limits = append(g.limits, l.Named(fmt.Sprint("limit", i)))
	}
	return g
}

// takenBackTogether compares a key of which some was taken back under all of several limits with
// one that was only asked for the rest: then, and in all that is decided later.
func takenBackTogether(t *testing.T, s headgate.Store) {
	back := 0
	for seed := range 2 * histories() {
		g := newGrouped(t, s, seed)
		for range 30 {
			g.step()
		}
		g.takeBack()
		back += g.back
		without := g.without(seed)
		for step := range 6 {
			g.sameAs(without, seed, step)
		}
	}
	if back < int(histories()) {
		t.Errorf("only %d were taken back: this tells little", back)
	}
}

// step asks for something, takes something back, or lets some time go by.
func (g *grouped) step() {
	switch g.IntN(8) {
	case 0:
		g.takeBack()
	case 1, 2:
		l := g.limits[g.IntN(len(g.limits))]
		g.now = g.now.Add(time.Duration(g.Int64N(int64(l.Period())/l.Capacity()*2 + 1))).Truncate(time.Microsecond)
	case 3:
		g.ask(g.limits[g.IntN(len(g.limits)):][:1], g.mostWait(), 0)
	case 4:
		some := slices.Clone(g.limits)
		g.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		g.ask(some[:2], g.mostWait(), 0)
	default:
		g.tickets++
		g.ask(g.limits, g.mostWait(), g.tickets)
	}
}

func (g *grouped) mostWait() time.Duration { return []time.Duration{0, time.Minute, year}[g.IntN(3)] }

// ask asks for random costs under limits.
func (g *grouped) ask(limits []headgate.Limit, wait time.Duration, ticket uint64) {
	rs, granted, cost := make([]headgate.Request, len(limits)), true, 1+g.Int64N(3)
	for i, l := range limits {
		rs[i] = headgate.Request{Key: g.key, Limit: l, Cost: min(cost, l.Capacity()), At: g.now, MaxWait: wait, Ticket: ticket}
		if ticket != 0 {
			rs[i].Hold = year
		}
	}
	for _, d := range takeAll(g.T, g.store, rs) {
		granted = granted && d.Within(wait)
	}
	if granted {
		g.granted = append(g.granted, grantedTogether{rs, ticket != 0 || wait > 0})
	}
}

// takeBack gives back a random grant, or parts of it.
func (g *grouped) takeBack() {
	var held []int
	for i, p := range g.granted {
		if p.rs[0].Ticket != 0 {
			held = append(held, i)
		}
	}
	if len(held) == 0 {
		return
	}
	g.back++
	i := held[g.IntN(len(held))]
	rs, cost := g.granted[i].rs, 1+g.Int64N(3)
	back := slices.Clone(rs)
	for j := range back {
		back[j].Cost, back[j].MaxWait, back[j].Hold, back[j].At = -min(cost, rs[j].Cost), 0, 0, g.now
		rs[j].Cost += back[j].Cost
	}
	for _, d := range takeAll(g.T, g.store, back) {
		if d.RetryAfter != 0 {
			g.Fatalf("taken back: %s", describe(d))
		}
	}
	if rs[0].Cost == 0 {
		g.granted = slices.Delete(g.granted, i, i+1)
	}
}

// without is the history in which nothing was taken back: what is left of g was asked at its
// time, and waited. The turns that it had then are those that g tells for the tickets.
func (g *grouped) without(seed uint64) *grouped {
	w := *g
	w.key += " without"
	for _, p := range g.granted {
		rs := slices.Clone(p.rs)
		for i := range rs {
			rs[i].Key, rs[i].MaxWait, rs[i].Ticket, rs[i].Hold = w.key, year, 0, 0
		}
		if !p.coupled {
			for _, r := range rs {
				take(g.T, g.store, r)
			}
			continue
		}
		turn := takeAll(g.T, g.store, rs)[0].RetryAfter
		for _, r := range p.rs {
			look := headgate.Request{Key: g.key, Limit: r.Limit, Ticket: r.Ticket, At: g.now}
			want := max(turn-g.now.Sub(r.At), 0)
			if r.Ticket == 0 || want == 0 {
				continue
			}
			if d := take(g.T, g.store, look); d.RetryAfter != want {
				g.Fatalf("seed %d: the turn of ticket %d comes in %s; %s if what was taken back had never been granted", seed, r.Ticket, d.RetryAfter, want)
			}
		}
	}
	return &w
}

// sameAs looks at both keys, and books the same of both.
func (g *grouped) sameAs(w *grouped, seed uint64, step int) {
	g.Helper()
	cost, wait := int64(step%2), []time.Duration{0, 0, year}[g.IntN(3)]
	rs := make([]headgate.Request, len(g.limits))
	for i, l := range g.limits {
		rs[i] = headgate.Request{Key: g.key, Limit: l, Cost: cost, At: g.now, MaxWait: wait}
	}
	got := takeAll(g.T, g.store, rs)
	for i := range rs {
		rs[i].Key = w.key
	}
	for i, want := range takeAll(g.T, g.store, rs) {
		if got[i] != want {
			g.Fatalf("seed %d, step %d: %s; %s if what was taken back had never been granted", seed, step, describe(got[i]), describe(want))
		}
	}
	g.now = g.now.Add(g.limits[g.IntN(len(g.limits))].Period() / 3).Truncate(time.Microsecond)
}

// allBackOrNone takes back what counts for good under one of two limits, and gives back beside
// taking.
func allBackOrNone(t *testing.T, s headgate.Store) {
	a, b := parse(t, "a=4/s"), parse(t, "b=4/m fixed-window")
	both := func(costs [2]int64, ticket uint64) []headgate.Decision {
		rs := []headgate.Request{
			{Key: "all back", Limit: a, Cost: costs[0], Ticket: ticket, At: epoch},
			{Key: "all back", Limit: b, Cost: costs[1], Ticket: ticket, At: epoch},
		}
		for i := range rs {
			if rs[i].Cost > 0 {
				rs[i].Hold = year
			}
		}
		return takeAll(t, s, rs)
	}
	both([2]int64{1, 1}, 1)
	both([2]int64{2, 2}, 2)
	take(t, s, headgate.Request{Key: "all back", Limit: a, Cost: -1, Ticket: 1, At: epoch})
	for i, c := range []struct {
		costs   [2]int64
		ticket  uint64
		allowed [2]bool // alone
		left    int64
	}{
		{[2]int64{-1, -1}, 1, [2]bool{false, true}, 1},
		{[2]int64{-1, 1}, 1, [2]bool{false, true}, 1},
		{[2]int64{-2, 2}, 2, [2]bool{true, false}, 1},
		{[2]int64{-2, -2}, 2, [2]bool{true, true}, 3},
		{[2]int64{-2, -2}, 2, [2]bool{false, false}, 3},
	} {
		for j, d := range both(c.costs, c.ticket) {
			if d.Allowed() != c.allowed[j] {
				t.Errorf("row %d, limit %d: %s", i+1, j+1, describe(d))
			}
		}
		if d := take(t, s, headgate.Request{Key: "all back", Limit: b, At: epoch}); d.Remaining != c.left {
			t.Errorf("row %d: %d are left; want %d", i+1, d.Remaining, c.left)
		}
	}
}

// agreementOfGroups puts random requests of one key under several limits to both stores: more wildly
// than anybody should, with tickets used twice, parts taken back alone, clocks that step back and
// numbers that change.
func agreementOfGroups(t *testing.T, got, want headgate.Store) {
	known := 0
	for seed := range 2 * histories() {
		g := newGrouped(t, got, seed)
		g.key += " wild"
		for step := range 40 {
			rs := g.wild()
			ds := takeAll(t, got, rs)
			for i, w := range takeAll(t, want, rs) {
				if ds[i] != w {
					t.Fatalf("seed %d, step %d, %d of %d: %s:\n got  %s\n want %s", seed, step, i+1, len(rs), show(rs[i]), describe(ds[i]), describe(w))
				}
				if len(rs) > 1 && rs[i].Ticket != 0 && rs[i].Cost < 0 && w.Allowed() {
					known++
				}
			}
		}
	}
	if known < int(histories()) {
		t.Errorf("only %d were taken back: this tells little", known)
	}
}

// wild makes random requests that go together.
func (g *grouped) wild() []headgate.Request {
	if g.IntN(30) == 0 {
		i := g.IntN(len(g.limits))
		g.limits[i] = parse(g.T, turnLimits[g.IntN(len(turnLimits))]).Named(g.limits[i].Name())
	}
	some := slices.Clone(g.limits)
	g.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
	g.now = g.now.Add(time.Duration(g.Int64N(int64(some[0].Period())/4)) * time.Duration(g.IntN(5)-1) / 4).Truncate(time.Microsecond)
	if g.now.Before(epoch) {
		g.now = epoch
	}
	g.tickets += uint64(g.IntN(5) / 4)
	ticket := (1 + g.tickets - min(uint64(g.IntN(4)), g.tickets)) * uint64(min(g.IntN(4), 1))
	cost, wait, hold := g.Int64N(6)-2, g.mostWait(), []time.Duration{0, time.Second, year}[g.IntN(3)]
	var rs []headgate.Request
	for _, l := range some[:1+g.IntN(len(some))] {
		r := headgate.Request{Key: g.key, Limit: l, Cost: cost, At: g.now, MaxWait: wait, Ticket: ticket}
		if g.IntN(12) == 0 {
			r.Cost, r.Ticket = g.Int64N(5)-2, g.Uint64N(g.tickets+1)
		}
		if r.Ticket != 0 {
			r.Hold = hold
		}
		rs = append(rs, r)
	}
	return rs
}

func takeAll(t testing.TB, s headgate.Store, rs []headgate.Request) []headgate.Decision {
	t.Helper()
	ds := make([]headgate.Decision, len(rs))
	if err := s.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatalf("TakeAll of %d, the first %s: %v", len(rs), show(rs[0]), err)
	}
	return ds
}
