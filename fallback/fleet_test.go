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

// fleet is instances that share a store, each with a connection of its own, and all that they
// granted.
type fleet struct {
	random      *rand.Rand
	connections []*breakable
	stores      []*fallback.Store
	shared      *headgate.Memory
	limit       headgate.Limit
	first       int // of an even load, the instance that comes first
	grants      []time.Time
	mixed       time.Duration // how long some used the store while others did not
	changes     []time.Time   // when the store failed or worked again
}

const (
	openTimeout = 200 * time.Millisecond
	step        = 2 * time.Millisecond
	noticed     = openTimeout + 10*step // how long it takes until all instances notice a change
)

// newFleet makes a fleet whose instances assume a number of instances.
func newFleet(t *testing.T, seed uint64, l headgate.Limit, instances, assumed int) *fleet {
	t.Helper()
	f := &fleet{random: rand.New(rand.NewPCG(seed, 1)), shared: headgate.NewMemory(), limit: l}
	for range instances {
		c := &breakable{Store: f.shared}
		f.connections = append(f.connections, c)
		f.stores = append(f.stores, newStore(t, c, fallback.Options{
			Mode: fallback.Local, Instances: of(assumed),
			OpenTimeout: openTimeout, Failures: 1, Timeout: 10 * time.Millisecond,
		}))
	}
	return f
}

// run sends requests for a while: at each step to a random half of the instances, or to all of
// them if even.
func (f *fleet) run(t *testing.T, d time.Duration, even bool) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(step) {
		connected := 0
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
				connected++
			}
		}
		if connected > 0 && connected < len(f.stores) {
			f.mixed += step
		}
	}
}

func (f *fleet) set(how int32) {
	f.changes = append(f.changes, time.Now())
	for _, c := range f.connections {
		c.how.Store(how)
	}
}

// over returns by how much the grants in the worst interval exceed the bound: each part between two
// changes may bring most, and time brings rate, also while the fleet is mixed. An interval that
// begins before a change is noticed contains that change.
func (f *fleet) over(most int64, rate float64) (worst int64, where string) {
	for i, from := range f.grants {
		noticedBefore := 0
		for _, at := range f.changes {
			if at.Add(noticed).Before(from) {
				noticedBefore++
			}
		}
		begun := 0
		for j := i; j < len(f.grants); j++ {
			to := f.grants[j]
			for begun < len(f.changes) && !f.changes[begun].After(to) {
				begun++
			}
			k := max(begun-noticedBefore, 0)
			span := to.Sub(from) + time.Duration(k)*noticed
			bound := int64(k+1)*most + int64(rate*span.Seconds())
			if n := int64(j-i+1) - bound; n > worst {
				worst = n
				where = fmt.Sprintf("%d grants in %s with %d changes; at most %d",
					j-i+1, to.Sub(from), k, bound)
			}
		}
	}
	return worst, where
}

// The store fails for all instances and works again for all, several times. The fleet keeps the
// bound that docs/design/fallback.md states, in every interval.
func TestAFleetKeepsItsBound(t *testing.T) {
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
				if f.mixed > time.Duration(len(f.changes))*noticed {
					t.Errorf("%s, seed %d: mixed for %s", c.limit, seed, f.mixed)
				}
			})
		}
	}
}

// pieces returns into how many pieces the changes cut an interval.
func (f *fleet) pieces(from, to time.Time) int64 {
	pieces := int64(1)
	for _, at := range f.changes {
		if at.Before(to) && at.Add(noticed).After(from) {
			pieces++
		}
	}
	return pieces
}

// So does each window of its own of a fixed or sliding window.
func TestAFleetKeepsTheBoundOfItsWindows(t *testing.T) {
	for _, text := range []string{
		"20/400ms fixed-window", "20/400ms sliding-window",
		"3/400ms fixed-window", "3/400ms sliding-window",
	} {
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
						t.Errorf("%s, seed %d: %d grants in a window of %d pieces; at most %d",
							text, seed, n, pieces, most)
					}
				}
			})
		}
	}
}

// The bound can fail: instances that assume to be alone exceed it.
func TestAFleetOfInstancesThatAssumeToBeAloneExceedsItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := request("40/s").Limit
		f := newFleet(t, 1, l, 4, 1)
		f.set(fails)
		f.run(t, 2*time.Second, false)
		if n, where := f.over(l.Capacity(), 40); n < 100 {
			t.Errorf("exceeded by %d: %s", n, where)
		}
	})
}

// Whatever fails, for any instance at any time, no interval contains more than twice the limit.
func TestAFleetOfWhichSomeFailGrantsAtMostTwiceTheLimit(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			l := request("40/s").Limit
			f := newFleet(t, seed, l, 4, 4)
			for range 60 {
				f.connections[f.random.IntN(4)].how.Store(int32(f.random.IntN(4)))
				f.run(t, time.Duration(f.random.IntN(100))*time.Millisecond, false)
			}
			if n, where := f.over(2*l.Capacity(), 2*40); n > 0 {
				t.Errorf("seed %d: %s", seed, where)
			}
		})
	}
}

// If the load is even, a failure of the store adds nothing: the interval around it contains what
// the limit alone would grant.
func TestAFailureUnderEvenLoadAddsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := request("40/s").Limit
		f := newFleet(t, 1, l, 4, 4)
		f.run(t, time.Second, true)
		before := len(f.grants)
		f.set(fails)
		f.run(t, time.Second, true)
		f.changes = nil
		if n, where := f.over(l.Capacity()+4, 40); n > 0 { // a part of a token for each share
			t.Error(where)
		}
		if after := len(f.grants) - before; after < 36 {
			t.Errorf("in the second after that %d were granted", after)
		}
	})
}

// start adds an instance that counts all that run.
func (f *fleet) start(t *testing.T) {
	t.Helper()
	c := &breakable{Store: f.shared}
	c.how.Store(f.connections[0].how.Load())
	f.connections = append(f.connections, c)
	f.stores = append(f.stores, newStore(t, c, fallback.Options{
		Mode: fallback.Local, Instances: func() int { return len(f.stores) },
		OpenTimeout: openTimeout, Failures: 1, Timeout: 10 * time.Millisecond,
	}))
}

// stop ends the first n instances.
func (f *fleet) stop(n int) { f.connections, f.stores = f.connections[n:], f.stores[n:] }

// drain takes from all instances until none grants, and returns how much they granted.
func (f *fleet) drain(t *testing.T) (granted float64) {
	t.Helper()
	for _, s := range f.stores {
		for range f.limit.Capacity() {
			if take(t, s, headgate.Request{Key: "k", Limit: f.limit, Cost: 1}).Allowed() {
				granted++
			}
		}
	}
	return granted
}

// The formula of docs/redis-fails.md counts restarts and joins, and instances reach it: after an
// outage in which instances restart and join, they have granted all shares, and the store grants
// the limit.
func TestAFleetReachesItsBound(t *testing.T) {
	for _, c := range []struct {
		limit          string
		restarts, join int
		least          float64 // of the bound, which shares round down
	}{
		{"1000/d", 0, 0, 1},
		{"1000/d", 5, 0, 1},
		{"1000/d", 2, 4, 0.99},
		{"1000/d sliding-log", 5, 0, 1},
		{"1000/d fixed-window", 3, 4, 0.9},
		{"2/d", 3, 0, 1}, // more instances than tokens
	} {
		synctest.Test(t, func(t *testing.T) {
			const instances = 4
			f := newFleet(t, 1, request(c.limit).Limit, instances, instances)
			capacity := float64(f.limit.Capacity())
			f.set(fails)
			granted, shares := f.drain(t), instances*max(capacity/instances, 1)
			for range c.restarts {
				for range instances {
					f.start(t)
				}
				f.stop(instances)
				granted += f.drain(t)
				shares += instances * max(capacity/instances, 1)
			}
			for range c.join {
				f.start(t)
			}
			granted += f.drain(t)
			shares += float64(c.join) * max(capacity/float64(len(f.stores)), 1)
			f.set(works)
			time.Sleep(untilRetry)
			granted += f.drain(t)
			bound := capacity + shares + 1 // and less than a token that arrives meanwhile
			if granted > bound || granted < c.least*(bound-1) {
				t.Errorf("%+v: granted %v; the bound is %v", c, granted, bound)
			}
		})
	}
}
