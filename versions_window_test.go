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

// Windows of different lengths that take turns are each granted exactly what they would
// be alone if the other's grants were theirs: neither forgets, and neither is short.
func TestWindowsInTurnCountEachTheirOwn(t *testing.T) {
	exact := 0
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 6))
		ls := someWindows(random, seed%2 == 0)
		exact += countInTurn(t, random, seed, ls)
	}
	if exact < 100_000 {
		t.Errorf("only %d decisions: this tells little", exact)
	}
}

func someWindows(random *rand.Rand, sliding bool) [2]Limit {
	window := FixedWindow
	if sliding {
		window = SlidingWindow
	}
	lengths := [][2]time.Duration{{time.Second, 7 * time.Second}, {time.Second, time.Minute}, {2 * time.Second, 3 * time.Second}, {5 * time.Second, 10 * time.Second}}
	pair := lengths[random.IntN(len(lengths))]
	return [2]Limit{
		window(1+random.Int64N(50), pair[0]).Named("api"),
		window(1+random.Int64N(200), pair[1]).Named("api"),
	}
}

func countInTurn(t *testing.T, random *rand.Rand, seed uint64, ls [2]Limit) (exact int) {
	t.Helper()
	m := NewMemory(16)
	long := ls[1].rule.period
	span := 1 + long/[]int64{10, 30, 100}[random.IntN(3)]
	now := midnight.UnixMicro()
	unknown := now + 2*long // until then a version may have begun from what the other one knew
	var asked [2]int64
	tallies := [2]tally{{ls[0].rule, make(map[int64]int64)}, {ls[1].rule, make(map[int64]int64)}}
	for step := range 400 {
		i := random.IntN(2)
		if now-asked[1-i] >= long || firstSight(m, "k", ls[i], now) {
			unknown = now + 2*long // the other one may have been forgotten
		}
		asked[i] = now
		r := Request{Key: "k", Limit: ls[i], At: time.UnixMicro(now)}
		left := must(m.Take(t.Context(), r)).Remaining
		if now > unknown {
			exact++
			if want := tallies[i].left(now); left != want {
				t.Errorf("seed %d, step %d: %v beside %v is left %d, and %d alone", seed, step, ls[i], ls[1-i], left, want)
				return exact
			}
		}
		r.Cost = 1 + random.Int64N(max(left, 1)+left/4)
		if random.IntN(8) == 0 {
			r.Cost = -min(r.Cost, ls[i].Capacity())
		}
		if must(m.Take(t.Context(), r)).Allowed() {
			tallies[0].charge(now, r.Cost)
			tallies[1].charge(now, r.Cost)
		}
		now += random.Int64N(span)
	}
	return exact
}
