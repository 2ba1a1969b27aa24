package simulation

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/lease"
)

// The settings of each instance. The TTL is long because an instance gets two requests a
// second, and not thousands.
const (
	fraction  = lease.DefaultPrefetchFraction
	ttl       = 100 * lease.DefaultTTL
	tableKeys = 64 // of each denycache and lease
)

// plan is what a run simulates.
type plan struct {
	seed      uint64        // of traffic, deaths and partitions
	instances int           // alive at a time
	keys      int           // of which few are hot: see zipf
	homes     int           // to how many instances the requests of a key go; 0: to any
	rate      float64       // requests a second on average
	length    time.Duration // of the traffic
	life      time.Duration // of an instance, on average
	calm      time.Duration // between the beginnings of partitions, on average
}

const (
	zipf   = 1.2              // the exponent: key r is asked for in proportion to 1 / r^zipf
	astray = 10               // one in so many requests goes to any instance
	tide   = 10 * time.Minute // in which the rate rises and falls by half
)

// fleet is the instances, their store, and what is known about both.
type fleet struct {
	plan
	store   *headgate.Memory // stands for Redis
	byRank  []*ledger
	ledgers map[string]*ledger // by key
	slots   []atomic.Pointer[instance]
	start   time.Time
	counts  counts
	bins    [binCount]bin
}

// binCount is how many parts the time of a run is shown in.
const binCount = 120

// bin is what came in a part of the time.
type bin struct{ asked, calls atomic.Int64 }

// counts are those of a run.
type counts struct {
	byLease, byDenyCache, byStore, unanswered atomic.Int64 // requests
	takes, prefetches, drains                 atomic.Int64 // calls
	deaths, partitions                        atomic.Int64
}

// newFleet makes a fleet, in the bubble in which it lives.
func newFleet(p plan) (*fleet, error) {
	f := &fleet{
		plan: p, store: headgate.NewMemorySize(10 * p.keys), start: time.Now(),
		ledgers: map[string]*ledger{}, slots: make([]atomic.Pointer[instance], p.instances),
	}
	bucket, window := headgate.PerMinute(3000).Burst(3000), headgate.FixedWindow(3000, time.Minute)
	ideal := headgate.NewMemorySize(10 * p.keys)
	for r := range p.keys {
		k := &ledger{key: fmt.Sprint("customer:", r+1), limit: bucket, ideal: ideal}
		if r%2 == 1 {
			k.limit = window
		}
		f.byRank, f.ledgers[k.key] = append(f.byRank, k), k
	}
	for s := range f.slots {
		if err := f.bear(s); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// bear puts a new instance into slot s.
func (f *fleet) bear(s int) error {
	i, err := newInstance(f)
	if err != nil {
		return err
	}
	f.slots[s].Store(i)
	return nil
}

// run lets all happen, and ends when the last message has arrived.
func (f *fleet) run(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { f.traffic(ctx) })
	all.Go(func() { f.deaths() })
	all.Go(func() { f.partitions(&all) })
	all.Wait()
	time.Sleep(stall + ttl) // until all that is late has arrived
}

func (f *fleet) random(stream uint64) *rand.Rand {
	return rand.New(rand.NewPCG(f.seed, stream))
}

// each calls do at random moments, on average one each gap, until the traffic ends.
func (f *fleet) each(random *rand.Rand, gap func() time.Duration, do func()) {
	each(random, f.start.Add(f.length), gap, do)
}

// each calls do at random moments, on average one each gap, until end.
func each(random *rand.Rand, end time.Time, gap func() time.Duration, do func()) {
	for ; ; do() {
		time.Sleep(time.Duration(random.ExpFloat64() * float64(gap())))
		if !time.Now().Before(end) {
			return
		}
	}
}

// traffic is the requests.
func (f *fleet) traffic(ctx context.Context) {
	random := f.random(1)
	ranks := rand.NewZipf(random, zipf, 1, uint64(f.keys-1))
	var all sync.WaitGroup
	f.each(random, f.gap, func() {
		r, cost := int(ranks.Uint64()), int64(1)
		if random.IntN(10) == 0 {
			cost += random.Int64N(5)
		}
		i := f.slots[f.route(random, r)].Load()
		f.bin().asked.Add(1)
		all.Go(func() { i.ask(ctx, f.byRank[r], cost) })
	})
	all.Wait()
}

// route is the slot to which a request for the key of that rank goes.
func (f *fleet) route(random *rand.Rand, rank int) int {
	if f.homes == 0 || random.IntN(astray) == 0 {
		return random.IntN(len(f.slots))
	}
	return (rank*f.homes + random.IntN(f.homes)) % len(f.slots)
}

// gap is the mean time between requests at this moment.
func (f *fleet) gap() time.Duration {
	return time.Duration(float64(time.Second) / (f.rate * f.tide()))
}

// deaths end instances, and put a new one in the place of each.
func (f *fleet) deaths() {
	random := f.random(2)
	f.each(random, func() time.Duration { return f.life / time.Duration(len(f.slots)) }, func() {
		s := random.IntN(len(f.slots))
		f.slots[s].Load().die()
		f.counts.deaths.Add(1)
		if err := f.bear(s); err != nil {
			panic(err) // it could be born before
		}
	})
}

// partitions cut off up to a fifth of the instances, for up to half a minute.
func (f *fleet) partitions(all *sync.WaitGroup) {
	random := f.random(3)
	f.each(random, func() time.Duration { return f.calm }, func() {
		f.counts.partitions.Add(1)
		some := random.Perm(len(f.slots))[:1+random.IntN(max(len(f.slots)/5, 1))]
		lasts := time.Duration(random.Int64N(int64(30 * time.Second)))
		all.Go(func() {
			var cut []*instance
			for _, s := range some {
				i := f.slots[s].Load()
				i.cut.Add(1)
				cut = append(cut, i)
			}
			time.Sleep(lasts)
			for _, i := range cut {
				i.cut.Add(-1)
			}
		})
	})
}

// bin is the part of the time that it is.
func (f *fleet) bin() *bin {
	return &f.bins[min(int(time.Since(f.start)*binCount/f.length), binCount-1)]
}

// called takes note of a call of the store.
func (f *fleet) called() { f.bin().calls.Add(1) }

// tide is by how much the rate is above its mean at this moment, as a factor.
func (f *fleet) tide() float64 {
	return 1 + math.Sin(2*math.Pi*float64(time.Since(f.start))/float64(tide))/2
}
