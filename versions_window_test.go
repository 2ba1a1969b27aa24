package headgate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// tally counts the grants of a key in each aligned window of a limit, under whatever
// version they were granted.
type tally struct {
	*rule
	counts map[int64]int64 // by the number of the window
}

// charge adds a cost granted at now. What is given back is taken from the last two windows.
func (c tally) charge(now, cost int64) {
	window := now / c.period
	c.counts[window] += cost
	if over := c.counts[window]; over < 0 {
		c.counts[window] = 0
		c.counts[window-1] = max(c.counts[window-1]+over, 0)
	}
}

// left is what the limit alone would grant at now.
func (c tally) left(now int64) int64 {
	window := now / c.period
	counted := c.counts[window]
	if c.algorithm == AlgorithmSlidingWindow {
		counted += ceilDiv(c.counts[window-1]*(c.period-now%c.period), c.period)
	}
	return max(c.capacity-counted, 0)
}

// Windows of different lengths that take turns are each left what they would be if all
// grants were theirs: neither forgets, and neither is short, from when both are kept.
func TestWindowsInTurnCountEachTheirOwn(t *testing.T) {
	exact := make(map[Algorithm]int)
	for seed := range uint64(often(4000)) {
		random := rand.New(rand.NewPCG(seed, 6))
		w := windowsInTurn{T: t, random: random, memory: NewMemory(16), now: midnight.UnixMicro()}
		for i, l := range someWindows(random, seed%2 == 0) {
			w.tallies[i] = tally{l.rule, make(map[int64]int64)}
		}
		exact[w.tallies[0].algorithm] += w.run(seed)
		if t.Failed() {
			return
		}
	}
	if exact[AlgorithmFixedWindow] < often(100_000) || exact[AlgorithmSlidingWindow] < often(100_000) {
		t.Errorf("only %d decisions: this tells little", exact)
	}
}

func someWindows(random *rand.Rand, sliding bool) [2]Limit {
	window := FixedWindow
	if sliding {
		window = SlidingWindow
	}
	lengths := [][2]time.Duration{{time.Second, 7 * time.Second}, {time.Second, time.Minute}, {2 * time.Second, 3 * time.Second}, {5 * time.Second, 61 * time.Second}}
	pair := lengths[random.IntN(len(lengths))]
	return [2]Limit{
		window(1+random.Int64N(50), pair[0]).Named("api"),
		window(1+random.Int64N(200), pair[1]).Named("api"),
	}
}

// windowsInTurn asks two windows in turn for one key, and keeps a tally of each that
// begins with what the store keeps when it takes that up.
type windowsInTurn struct {
	*testing.T
	random  *rand.Rand
	memory  *Memory
	now     int64
	tallies [2]tally
	known   [2]bool
	asked   [2]int64
}

func (w *windowsInTurn) run(seed uint64) (exact int) {
	span := 1 + w.tallies[1].period/[]int64{3, 10, 30, 100}[w.random.IntN(4)]
	for step := range 300 {
		i := w.random.IntN(2)
		l := Limit{w.tallies[i].rule}
		r := Request{Key: "k", Limit: l, At: time.UnixMicro(w.now)}
		w.forget(l)
		left := must(w.memory.Take(w.Context(), r)).Remaining
		if w.known[i] {
			exact++
			if want := w.tallies[i].left(w.now); left != want {
				w.Errorf("seed %d, step %d: %v is left %d, and %d if all were its own", seed, step, l, left, want)
				return exact
			}
		}
		r.Cost = 1 + w.random.Int64N(max(left, 1)+left/4)
		if w.random.IntN(8) == 0 {
			r.Cost = -min(r.Cost, l.Capacity())
		}
		if must(w.memory.Take(w.Context(), r)).Allowed() {
			w.tallies[0].charge(w.now, r.Cost)
			w.tallies[1].charge(w.now, r.Cost)
		}
		w.asked[i] = w.now
		other := w.known[1-i]
		w.learn(i)
		if other && w.known[i] && !w.known[1-i] && w.now-w.asked[1-i] < w.tallies[1].period && w.tallies[1-i].left(w.now) < w.tallies[1-i].capacity-r.Cost {
			w.Errorf("seed %d, step %d: %v forgets %v", seed, step, l, w.tallies[1-i].text())
		}
		w.now += w.random.Int64N(span)
	}
	return exact
}

// forget notes which of the two the store knows nothing of.
func (w *windowsInTurn) forget(l Limit) {
	s, h := w.memory.locate("k", l.rule)
	t := s.find(h)
	for i := range w.known {
		kept := t != nil && !s.stale(t, s.limits, w.now) &&
			(s.limits[t.tag&idMask] == w.tallies[i].rule || s.versionBeside(t, s.limits).l == w.tallies[i].rule)
		w.known[i] = w.known[i] && kept
	}
}

// learn begins the tally of the version that was asked, if it is new, with what is kept of it.
func (w *windowsInTurn) learn(i int) {
	c := &w.tallies[i]
	w.forget(Limit{c.rule})
	s, h := w.memory.locate("k", c.rule)
	t := s.find(h)
	if w.known[i] || t == nil || s.limits[t.tag&idMask] != c.rule {
		return
	}
	kept := c.since(t.state(c.rule), w.now)
	clear(c.counts)
	c.counts[w.now/c.period], c.counts[w.now/c.period-1] = kept.used, kept.previous
	w.known[i] = kept != (state{})
}
