package headgate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// often is n, or an eighth of it where tests shall be short, as under the race detector.
func often(n int) int {
	if testing.Short() {
		return n / 8
	}
	return n
}

// shadow is a bucket of its own, in floating point, that is charged with everything
// that is granted under any version: what it misses is never bounded by what it holds.
type shadow struct {
	stepped                bool
	capacity, refill, each float64 // each period, in microseconds
	at, missing            float64
}

func shadowOf(l Limit) *shadow {
	return &shadow{
		stepped:  l.Algorithm() == AlgorithmStepped,
		capacity: float64(l.Capacity()), refill: float64(l.Refill()), each: float64(l.Period().Microseconds()),
	}
}

func (s *shadow) rate() float64 { return s.refill / s.each }

func (s *shadow) pass(now float64) {
	if now <= s.at {
		return
	}
	if !s.stepped {
		s.missing, s.at = max(s.missing-(now-s.at)*s.rate(), 0), now
		return
	}
	steps := math.Floor((now - s.at) / s.each)
	if s.missing <= steps*s.refill {
		s.missing, s.at = 0, now
		return
	}
	s.missing, s.at = s.missing-steps*s.refill, s.at+steps*s.each
}

func (s *shadow) charge(cost float64) { s.missing = max(s.missing+cost, 0) }

// become takes over what d tells of a bucket, if that is all of it.
func (s *shadow) become(d Decision, now int64) bool {
	s.missing, s.at = s.capacity-float64(d.Remaining), float64(now)
	if !s.stepped || s.missing == 0 {
		return true // of a fraction of a token it may have more
	}
	s.at += float64(d.ResetAfter.Microseconds()) - math.Ceil(s.missing/s.refill)*s.each
	return d.Remaining > 0 // else more than it holds may be missing
}

// generous is a bucket of the largest capacity and the fastest rate of several; of
// stepped ones with a step to spare.
func generous(ls []Limit) *shadow {
	s, step := &shadow{each: 1}, 0.0
	for _, l := range ls {
		one := shadowOf(l)
		s.refill = max(s.refill, one.rate())
		s.capacity = max(s.capacity, one.capacity)
		if one.stepped {
			step = max(step, one.refill)
		}
	}
	s.capacity += step
	return s
}

// outdoes says whether l is at least as generous as m in every way.
func outdoes(l, m Limit) bool {
	a, b := shadowOf(l), shadowOf(m)
	return a.capacity >= b.capacity && (a.rate() > b.rate() || a.rate() == b.rate() && a.refill >= b.refill)
}

// someVersions are versions of a named bucket as people might write them.
func someVersions(random *rand.Rand, stepped bool, n int) []Limit {
	periods := []time.Duration{7 * time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour, 30 * 24 * time.Hour}
	var ls []Limit
	for len(ls) < n {
		capacity := 1 + random.Int64N([]int64{10, 100, 1000, 100_000}[random.IntN(4)])
		refill := 1 + random.Int64N([]int64{10, 100, 1000}[random.IntN(3)])
		period := periods[random.IntN(len(periods))]
		l := Per(refill, period).Burst(capacity)
		if stepped {
			l = SteppedTokenBucket(refill, period).Burst(capacity)
		}
		if len(ls) > 0 && random.IntN(3) == 0 { // a change of capacity alone, or of the rate alone
			l = ls[0]
			if c := resizedTo(l, capacity); random.IntN(2) == 0 && c.Validate() == nil {
				l = c
			}
		}
		if l.Validate() == nil {
			ls = append(ls, l.Named("api"))
		}
	}
	return ls
}

func resizedTo(l Limit, capacity int64) Limit {
	if l.Algorithm() == AlgorithmStepped {
		return SteppedTokenBucket(l.Refill(), l.Period()).Burst(capacity)
	}
	return Per(l.Refill(), l.Period()).Burst(capacity)
}

// While two versions take turns, however they differ, no more is granted in any span
// than a bucket of the larger capacity and the faster rate would grant (of stepped ones:
// with the larger step to spare). Refunds and clocks that step back make no difference.
func TestTwoVersionsInTurnGrantNoMoreThanTheMoreGenerous(t *testing.T) {
	for seed := range uint64(often(8000)) {
		random := rand.New(rand.NewPCG(seed, 0))
		ls := someVersions(random, seed%2 == 0, 2)
		takeTurns(t, random, seed, ls, generous(ls))
	}
}

// Of more versions at once, what the one that is left out knew may be forgotten: up to a
// full bucket of each. That is rare; the numbers are measured, see ARCHITECTURE.md.
func TestManyVersionsInTurnGrantNoMoreThanAllOfThem(t *testing.T) {
	over := 0
	for seed := range uint64(often(4000)) {
		random := rand.New(rand.NewPCG(seed, 1))
		ls := someVersions(random, false, 3+random.IntN(3))
		all := generous(ls)
		most := all.capacity
		all.capacity = 0
		for _, l := range ls {
			all.capacity += float64(l.Capacity())
		}
		if takeTurns(t, random, seed, ls, all) > most {
			over++
		}
	}
	if over > often(40) {
		t.Errorf("in %d of %d more was granted than by the most generous alone", over, often(4000))
	}
}

// takeTurns asks versions ls in turn and charges all with what they grant. It returns
// the most that was missing from that, which is an error if it is more than it holds.
func takeTurns(t *testing.T, random *rand.Rand, seed uint64, ls []Limit, all *shadow) (most float64) {
	t.Helper()
	m := NewMemory(16)
	span := []int64{1, 1e3, 1e6, 60e6, 3600e6}[random.IntN(5)]
	now := midnight.UnixMicro()
	latest := now
	for step := range 300 {
		l := ls[random.IntN(len(ls))]
		at := time.UnixMicro(now)
		cost := someCost(random, l, must(m.Take(t.Context(), Request{Key: "k", Limit: l, At: at})).Remaining)
		if now < latest && firstSight(m, "k", l, now) {
			latest, all.at, all.missing = now, float64(now), 0 // of such a key nothing is known, not even the time
		}
		before := kept(m, l)
		granted := must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: cost, At: at})).Allowed()
		if kept(m, l) != before { // or else nobody learns of the time
			latest = max(latest, now)
		}
		if granted {
			all.pass(float64(latest))
			all.charge(float64(cost))
			most = max(most, all.missing)
		}
		if over := all.missing - all.capacity; over > 1e-6*all.capacity {
			t.Errorf("seed %d, step %d: %v grant %g too many", seed, step, ls, over)
			return most
		}
		now += random.Int64N(span + 1)
		if random.IntN(50) == 0 && ls[0].Algorithm() != AlgorithmStepped { // whose time only goes by steps
			now -= random.Int64N(span + 1)
		}
	}
	return most
}

// someCost is often what remains, and sometimes given back.
func someCost(random *rand.Rand, l Limit, remaining int64) int64 {
	cost := 1 + random.Int64N(l.Capacity())
	if remaining > 0 && random.IntN(2) == 0 {
		cost = 1 + random.Int64N(remaining)
	}
	if random.IntN(8) == 0 {
		return -cost
	}
	return cost
}

// kept is what m keeps of key k.
func kept(m *Memory, l Limit) (all struct {
	slot
	version
}) {
	s, h := m.locate("k", l.rule)
	if t := s.find(h); t != nil {
		all.slot, all.version = *t, s.versionBeside(t, s.limits)
	}
	return all
}

// firstSight says whether m knows nothing of key at now.
func firstSight(m *Memory, key string, l Limit, now int64) bool {
	s, h := m.locate(key, l.rule)
	t := s.find(h)
	return t == nil || s.stale(t, s.limits, now)
}

// The more generous of two versions that take turns is granted exactly what it would be
// alone, if it is asked as often as the bucket of the other takes to fill.
func TestTheMoreGenerousOfTwoVersionsIsNotShort(t *testing.T) {
	exact := 0
	for seed := range uint64(often(8000)) {
		random := rand.New(rand.NewPCG(seed, 2))
		if ls := someVersions(random, seed%2 == 0, 2); outdoes(ls[0], ls[1]) {
			exact += askInTurn(t, random, seed, ls[0], ls[1])
		}
	}
	if exact < often(50_000) {
		t.Errorf("only %d decisions: this tells little", exact)
	}
}

func askInTurn(t *testing.T, random *rand.Rand, seed uint64, large, small Limit) (exact int) {
	t.Helper()
	alone := shadowOf(large)
	lifetime := small.rule.lifetime(small.rule.full)
	span := min(lifetime/[]int64{1, 10, 1000}[random.IntN(3)], 1e12) + 2
	m := NewMemory(16)
	known := false // what it would have alone is known
	now := midnight.UnixMicro()
	asked := now
	for step := range 200 {
		look := func(l Limit) Decision {
			return must(m.Take(t.Context(), Request{Key: "k", Limit: l, At: time.UnixMicro(now)}))
		}
		known = known && now-asked < lifetime && !firstSight(m, "k", large, now)
		alone.pass(float64(now))
		if known {
			exact++
			if want := math.Floor(alone.capacity - alone.missing + 1e-9); float64(look(large).Remaining) < want {
				t.Errorf("seed %d, step %d: %v is left %d, and %g alone, beside %v", seed, step, large, look(large).Remaining, want, small)
				return exact
			}
		}
		l := []Limit{large, small}[random.IntN(2)]
		cost := someCost(random, l, look(l).Remaining)
		if must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: cost, At: time.UnixMicro(now)})).Allowed() {
			alone.charge(float64(cost))
		}
		if l == large {
			asked = now
			known = known || alone.become(look(l), now)
		}
		now += random.Int64N(span)
	}
	return exact
}

// A version that was given up is forgotten, whatever it would miss, though the key is asked
// for all the time: after eight times as long as the slower takes to be as at first sight;
// if it is that itself, after that time once; and if its capacity was never known, what it
// may come to miss stands for that.
func TestRetiredVersionsAreForgotten(t *testing.T) {
	for _, c := range retirements {
		m := NewMemory(16)
		old, young := must(ParseLimit(c.old)), must(ParseLimit(c.young))
		ask := func(l Limit, cost int64, after time.Duration) {
			must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: cost, At: midnight.Add(after)}))
		}
		ask(old, c.cost, 0)
		for after := time.Duration(0); after < c.remembered; after += c.each {
			ask(young, c.step, after)
			if kept(m, young).l != old.rule {
				t.Fatalf("%s is forgotten after %s", old, after)
			}
		}
		ask(young, c.step, c.remembered)
		if kept(m, young).l != nil {
			t.Errorf("%s is remembered after %s", old, c.remembered)
		}
	}
}

// retirements says for how long an old version is remembered that has used cost, while a young
// one is asked for some tokens at each step.
var retirements = []struct {
	old, young       string
	cost, step       int64
	each, remembered time.Duration
}{
	{"api=1000/m", "api=20/s", 1000, 20, time.Second, 8 * time.Minute},                               // never full again
	{"api=1000/m", "api=20/s", 100, 20, time.Second, 48 * time.Second},                               // at most 100 were known to miss
	{"api=1000/m", "api=60/h", 30, 1, time.Minute, time.Hour},                                        // full at once
	{"api=100/25s fixed-window", "api=1000/m fixed-window", 5, 1, 5 * time.Second, 75 * time.Second}, // as soon as it begins anew
	{"api=9/m sliding-window", "api=100/10s sliding-window", 5, 1, 5 * time.Second, 16 * time.Minute},
}
