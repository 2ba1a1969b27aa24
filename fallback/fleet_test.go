package fallback_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// fleet is some instances that share a store, each by a way of its own, and all that they
// granted.
type fleet struct {
	random *rand.Rand
	ways   []*breakable
	stores []*fallback.Store
	limit  headgate.Limit
	first  int // of an even load, who comes first
	grants []time.Time
	mixed  time.Duration // for how long some ask the store while others do not
	turns  []time.Time   // when the store fails or is back
}

const (
	pause = 200 * time.Millisecond
	step  = 2 * time.Millisecond
	going = pause + 10*step // for how long it takes until all know, at most
)

// newFleet makes one that believes in so many instances.
func newFleet(t *testing.T, seed uint64, l headgate.Limit, instances, believed int) *fleet {
	t.Helper()
	f := &fleet{random: rand.New(rand.NewPCG(seed, 1)), limit: l}
	shared := headgate.NewMemory(0)
	for range instances {
		way := &breakable{Store: shared}
		f.ways = append(f.ways, way)
		f.stores = append(f.stores, newStore(t, way, fallback.Options{
			Mode: fallback.Local, Instances: of(believed), Pause: pause, Failures: 1, Timeout: 10 * time.Millisecond,
		}))
	}
	return f
}

// run lets callers come for some time, each instance at random or, if even, all at each step.
func (f *fleet) run(t *testing.T, d time.Duration, even bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(step) {
		asking := 0
		f.first++
		for i := range f.stores {
			s := f.stores[(f.first+i)%len(f.stores)]
			if even || f.random.IntN(2) == 0 {
				d := take(t, s, headgate.Request{Key: "k", Limit: f.limit, Cost: 1})
				if d.Allowed() {
					f.grants = append(f.grants, time.Now())
				}
			}
			if !s.Stats().Degraded {
				asking++
			}
		}
		if asking > 0 && asking < len(f.stores) {
			f.mixed += step
		}
	}
}

func (f *fleet) set(how int32) {
	f.turns = append(f.turns, time.Now())
	for _, w := range f.ways {
		w.how.Store(how)
	}
}

// over says by how much the grants in any interval pass the bound, if they do: each piece between
// two turns of the fleet may bring most, and time brings rate, also while the fleet is mixed. An interval
// that begins while the fleet goes holds that turn.
func (f *fleet) over(most int64, rate float64) (worst int64, where string) {
	for i, from := range f.grants {
		turns := 0
		for _, at := range f.turns {
			if at.Add(going).Before(from) {
				turns--
			}
		}
		passed := 0
		for j := i; j < len(f.grants); j++ {
			to := f.grants[j]
			for passed < len(f.turns) && !f.turns[passed].After(to) {
				passed++
			}
			k := max(turns+passed, 0)
			span := to.Sub(from) + time.Duration(k)*going
			bound := int64(k+1)*most + int64(rate*span.Seconds())
			if n := int64(j-i+1) - bound; n > worst {
				worst, where = n, fmt.Sprintf("%d grants in %s with %d turns; at most %d", j-i+1, to.Sub(from), k, bound)
			}
		}
	}
	return worst, where
}

// A store that fails for all and comes back for all, again and again: what the fleet grants in any
// interval stays within what is stated.
func TestFleetKeepsItsBound(t *testing.T) {
	for _, c := range []struct {
		limit     string
		instances int
		rate      float64
	}{
		{"40/s", 4, 40},
		{"40/s burst 10", 4, 40},
		{"30/s burst 3", 7, 30}, // more instances than tokens
		{"40/s stepped", 5, 40},
		{"3/100ms stepped", 7, 30}, // more instances than tokens, and than a step brings
		{"20/400ms sliding-log", 4, 50},
	} {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				l := request(c.limit).Limit
				f := newFleet(t, seed, l, c.instances, c.instances)
				for range 3 {
					f.run(t, time.Duration(f.random.IntN(1000))*time.Millisecond, false)
					f.set(fails)
					f.run(t, time.Duration(f.random.IntN(1500))*time.Millisecond, false)
					f.set(works)
				}
				f.run(t, time.Second, false)
				most := max(l.Capacity(), int64(c.instances))
				if l.Algorithm() != headgate.AlgorithmTokenBucket {
					most *= 2 // a step of all, or the rest of a log, besides
				}
				if n, where := f.over(most, c.rate); n > 0 {
					t.Errorf("%s, seed %d: %s", c.limit, seed, where)
				}
				if f.mixed > time.Duration(len(f.turns))*going {
					t.Errorf("%s, seed %d: the fleet was mixed for %s", c.limit, seed, f.mixed)
				}
			})
		}
	}
}

// pieces is how many the turns cut an interval into.
func (f *fleet) pieces(from, to time.Time) int64 {
	pieces := int64(1)
	for _, at := range f.turns {
		if at.Before(to) && at.Add(going).After(from) {
			pieces++
		}
	}
	return pieces
}

// A window of the clock holds what is stated for it.
func TestFleetKeepsItsWindows(t *testing.T) {
	for _, text := range []string{"20/400ms fixed-window", "20/400ms sliding-window", "3/400ms fixed-window", "3/400ms sliding-window"} {
		for seed := range uint64(3) {
			synctest.Test(t, func(t *testing.T) {
				const window, instances = 400 * time.Millisecond, 7
				l := request(text).Limit
				f := newFleet(t, seed, l, instances, instances)
				for range 4 {
					f.run(t, time.Duration(f.random.IntN(900))*time.Millisecond, false)
					f.set(fails)
					f.run(t, time.Duration(f.random.IntN(900))*time.Millisecond, false)
					f.set(works)
				}
				f.run(t, time.Second, false)
				counts := map[time.Time]int64{}
				for _, at := range f.grants {
					counts[at.Truncate(window)]++
				}
				for from, n := range counts {
					pieces := f.pieces(from, from.Add(window))
					if most := pieces * max(l.Capacity(), instances); n > most {
						t.Errorf("%s, seed %d: %d grants in a window of %d pieces; at most %d", text, seed, n, pieces, most)
					}
				}
			})
		}
	}
}

// A fleet of which each instance takes the whole limit for its share passes the bound.
func TestFleetThatBelievesToBeAlonePassesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := request("40/s").Limit
		f := newFleet(t, 1, l, 4, 1)
		f.set(fails)
		f.run(t, 2*time.Second, false)
		if n, where := f.over(l.Capacity(), 40); n < 100 {
			t.Errorf("passed by %d: %s", n, where)
		}
	})
}

// Whatever fails, for whom and when, no interval holds more than twice the limit.
func TestFleetOfWhichSomeFail(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			l := request("40/s").Limit
			f := newFleet(t, seed, l, 4, 4)
			for range 60 {
				f.ways[f.random.IntN(4)].how.Store(int32(f.random.IntN(4)))
				f.run(t, time.Duration(f.random.IntN(100))*time.Millisecond, false)
			}
			if n, where := f.over(2*l.Capacity(), 2*40); n > 0 {
				t.Errorf("seed %d: %s", seed, where)
			}
		})
	}
}

// Where load is spread evenly, going over adds nothing: the interval around it holds what the
// limit alone would grant.
func TestGoingOverEvenlyAddsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := request("40/s").Limit
		f := newFleet(t, 1, l, 4, 4)
		f.run(t, time.Second, true)
		before := len(f.grants)
		f.set(fails)
		f.run(t, time.Second, true)
		f.turns = nil
		if n, where := f.over(l.Capacity()+4, 40); n > 0 { // less than a token each is left of a share
			t.Error(where)
		}
		if after := len(f.grants) - before; after < 36 {
			t.Errorf("in the second after that only %d were granted", after)
		}
	})
}
