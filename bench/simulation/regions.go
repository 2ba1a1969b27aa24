package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/denycache"
	"github.com/headgate/headgate/fallback"
	"github.com/headgate/headgate/lease"
)

// The regions: the first is the home.
const (
	regionCount  = 3
	perRegion    = 2                     // processes
	between      = 75 * time.Millisecond // one way from a region to another, at least
	patience     = 2 * time.Second       // of a caller
	storeTimeout = time.Second           // of a fallback
	leasePart    = 0.1                   // the PrefetchFraction
	limitCount   = 3000                  // of each key in a minute
)

// spread is how many of 10 requests come in each region.
var spread = [regionCount]int{6, 3, 1}

// design is a way to keep a limit in several regions.
type design struct {
	name   string
	home   bool          // all regions ask the store of the first
	mode   fallback.Mode // of a fallback around it, inside a lease; 0: neither of them
	divide int64         // each region has the limit, divided by this
	bound  int64         // what all regions together grant at most, as tokens in a minute
}

// The designs of docs/regions.md. Of six processes, four are cut off from the home.
var (
	alone  = design{"home without lease", true, 0, 1, limitCount}
	closed = design{"home, Closed", true, fallback.Closed, 1, limitCount}
	local  = design{"home, Local", true, fallback.Local, 1, limitCount + limitCount*4/6}
	parts  = design{"a part each", false, 0, regionCount, limitCount}
	whole  = design{"the limit each", false, 0, 1, limitCount * regionCount}
)

// demand is what is asked of keys of a kind.
type demand struct {
	name  string
	keys  int
	rate  float64 // requests a second, of all keys
	where func(random *rand.Rand, moves int) int
}

// The limit is 50 a second.
var demands = []demand{
	{"all regions, 450% of the limit", 1, 225, anyRegion},
	{"all regions, 80%", 1, 40, anyRegion},
	{"the smallest region, 80%", 1, 40, smallest},
	{"one region after the other, 150%", 1, 75, moving},
	{"all regions, rarely", 50, 5, anyRegion},
}

func anyRegion(random *rand.Rand, _ int) int {
	n := random.IntN(10)
	for r, share := range spread {
		if n -= share; n < 0 {
			return r
		}
	}
	return 0
}

func smallest(*rand.Rand, int) int { return regionCount - 1 }

func moving(_ *rand.Rand, moves int) int { return moves % regionCount }

// regionPlan is what a run simulates: the regions other than the home are cut off from it once.
type regionPlan struct {
	seed                  uint64
	length, cutAt, cutFor time.Duration
	stay                  time.Duration // of a key that moves, in a region
}

// phases are the times before, in and after the partition.
const phases = 3

// regions are the processes of a design, and what is known about them.
type regions struct {
	regionPlan
	design
	start     time.Time
	stores    [regionCount]*headgate.Memory // stand for the Redis of each
	processes [regionCount][perRegion]*process
	cut       atomic.Bool
	kinds     []*kind
	keys      map[string]*regionKey
	crossed   atomic.Int64 // calls of a store in another region
	healed    atomic.Int64 // when the last decision after the partition was made without its store
}

// kind is what was asked of the keys of a demand under one limit.
type kind struct {
	demand
	keys   []*regionKey
	mu     sync.Mutex
	phases [phases]answers
	// Of requests outside the home, and not in the partition:
	waits []time.Duration
	near  int64 // decided without a message to another region
}

// answers count requests.
type answers struct{ asked, could, granted, denied, undecided int64 }

// regionKey is a key with its limit, and the bound of the design.
type regionKey struct {
	ledger

	bound ledger
	local headgate.Limit // that a region applies
}

// newRegions makes the regions of a design, in the bubble in which they live.
func newRegions(p regionPlan, d design) (*regions, error) {
	w := &regions{regionPlan: p, design: d, start: time.Now(), keys: map[string]*regionKey{}}
	for r := range w.stores {
		w.stores[r] = headgate.NewMemorySize(1000)
	}
	for r := range w.processes {
		for i := range w.processes[r] {
			s, err := w.newStore(r)
			if err != nil {
				return nil, err
			}
			w.processes[r][i] = &process{regions: w, region: r, store: s}
		}
	}
	ideal := headgate.NewMemorySize(1000)
	for _, limit := range []func(int64) headgate.Limit{perMinute, inMinute} {
		for _, d := range demands {
			k := &kind{demand: d}
			for i := range d.keys {
				key := fmt.Sprint(limit(1), " ", d.name, " ", i)
				k.keys = append(k.keys, &regionKey{
					ledger: ledger{key: key, limit: limit(limitCount), ideal: ideal},
					bound:  ledger{limit: limit(w.bound)},
					local:  limit(limitCount / w.divide),
				})
				w.keys[key] = k.keys[i]
			}
			w.kinds = append(w.kinds, k)
		}
	}
	return w, nil
}

func perMinute(n int64) headgate.Limit { return headgate.PerMinute(n) }

func inMinute(n int64) headgate.Limit { return headgate.FixedWindow(n, time.Minute) }

// newStore makes the store of a process of region r.
func (w *regions) newStore(r int) (headgate.Store, error) {
	l := link{regions: w, from: r, to: r}
	if w.home {
		l.to = 0
	}
	if w.mode == 0 {
		return l, nil
	}
	o := fallback.Options{Mode: w.mode, Timeout: storeTimeout}
	if w.mode == fallback.Local {
		o.Instances = func() int { return regionCount * perRegion }
	}
	safe, err := fallback.New(l, o)
	if err != nil {
		return nil, err
	}
	denials, err := denycache.New(safe, tableKeys)
	if err != nil {
		return nil, err
	}
	return lease.New(denials, lease.Options{PrefetchFraction: leasePart, TTL: ttl, Keys: tableKeys})
}

// run lets all happen, and ends when the last message has arrived.
func (w *regions) run(ctx context.Context) {
	var all sync.WaitGroup
	for i, k := range w.kinds {
		all.Go(func() { w.traffic(ctx, rand.New(rand.NewPCG(w.seed, uint64(i))), k) })
	}
	time.Sleep(w.cutAt)
	w.cut.Store(true)
	time.Sleep(w.cutFor)
	w.cut.Store(false)
	all.Wait()
	time.Sleep(2 * ttl) // until all that is late has arrived
}

// traffic is the requests for the keys of k.
func (w *regions) traffic(ctx context.Context, random *rand.Rand, k *kind) {
	var all sync.WaitGroup
	gap := func() time.Duration { return time.Duration(float64(time.Second) / k.rate) }
	each(random, w.start.Add(w.length), gap, func() {
		key := k.keys[random.IntN(len(k.keys))]
		r := k.where(random, int(time.Since(w.start)/w.stay))
		p := w.processes[r][random.IntN(perRegion)]
		all.Go(func() { p.ask(ctx, k, key) })
	})
	all.Wait()
}

// phase is the part of the run that it is.
func (w *regions) phase() int {
	switch at := time.Since(w.start); {
	case at < w.cutAt:
		return 0
	case at < w.cutAt+w.cutFor:
		return 1
	}
	return 2
}
