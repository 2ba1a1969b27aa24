package headgate

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// visit is one call of WaitN. Times are since the start of the test.
type visit struct {
	at     time.Duration
	leaves time.Duration // 0: never
	n      int64
	passed time.Duration
	err    error
}

// testedStores are what the properties of waiting must hold in: a store in memory, one across
// a network, and one whose latency varies. jitter is by how much what it grants is seen late.
var testedStores = []struct {
	name   string
	jitter time.Duration
	new    func(seed uint64) Store
}{
	{"memory", 0, func(uint64) Store { return NewMemorySize(1000) }},
	{"10 ms", 0, func(uint64) Store {
		return &networkStore{Store: NewMemorySize(1000), there: 5 * time.Millisecond, back: 5 * time.Millisecond}
	}},
	{"0 to 20 ms", 10 * time.Millisecond, func(seed uint64) Store {
		return &networkStore{Store: NewMemorySize(1000), random: rand.New(rand.NewPCG(seed, 1)), there: 5 * time.Millisecond, back: 5 * time.Millisecond}
	}},
}

// maxLatency is what the slowest of them takes to answer.
const maxLatency = 20 * time.Millisecond

// attend makes all visits and waits until all have ended.
func attend(l *Limiter, visits []visit) {
	start := time.Now()
	var all sync.WaitGroup
	for i := range visits {
		v := &visits[i]
		all.Go(func() {
			time.Sleep(v.at)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if v.leaves > 0 {
				time.AfterFunc(v.leaves-v.at, cancel)
			}
			v.err = l.WaitN(ctx, "k", v.n)
			v.passed = time.Since(start)
		})
	}
	all.Wait()
	synctest.Wait()
}

// passed returns the visits that passed, in the order in which they did.
func passed(visits []visit) []visit {
	all := slices.DeleteFunc(slices.Clone(visits), func(v visit) bool { return v.err != nil })
	slices.SortStableFunc(all, func(a, b visit) int { return cmp.Compare(a.passed, b.passed) })
	return all
}

// over is by how many tokens the visits pass more in some interval than limit grants, seen with
// a jitter.
func over(l Limit, jitter time.Duration, visits []visit) float64 {
	rate := float64(l.Refill()) / float64(l.Period())
	most, level, last := 0., 0., time.Duration(0)
	for _, v := range passed(visits) {
		level = max(level-rate*float64(v.passed-last), 0) + float64(v.n)
		last = v.passed
		most = max(most, level-float64(l.Capacity()))
	}
	return most - rate*float64(jitter)
}

// overtaken counts the visits that a visit overtook that came after they had been answered.
func overtaken(visits []visit, latency time.Duration) int {
	all, n := passed(visits), 0
	for i, v := range all {
		if slices.ContainsFunc(all[:i], func(w visit) bool {
			return w.passed < v.passed && w.at > v.at+latency
		}) {
			n++
		}
	}
	return n
}

func lastPass(visits []visit) time.Duration {
	all := passed(visits)
	return all[len(all)-1].passed
}

// lines are all removed when no caller is left.
func checkNoLineIsLeft(t *testing.T, l *Limiter) {
	t.Helper()
	time.Sleep(time.Minute)
	synctest.Wait()
	if l.lines.Any() {
		t.Error("lines are left")
	}
}

// Once, callers that left while the store was asked freed their start times for later callers, and
// those behind them did not move up: 49 of 50 were overtaken, and the rest passed after twice
// the time.
func TestCallersThatLeaveWhileTheyAskLetOthersMoveUp(t *testing.T) {
	for _, tested := range testedStores {
		for _, when := range []string{"asking", "booked", "in line"} {
			t.Run(tested.name+"/"+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limit := PerSecond(50).Burst(1)
					l := must(NewLimiter(tested.new(1), limit))
					leaves := time.Duration(map[string]int{"asking": 6, "booked": 11, "in line": 70}[when]) * time.Millisecond
					visits := make([]visit, 101)
					for i := range visits {
						visits[i] = visit{n: 1, at: time.Duration(i) * 10 * time.Microsecond}
						if i%2 == 0 {
							visits[i].leaves = visits[i].at + leaves
						}
					}
					visits[100] = visit{n: 1, at: 600 * time.Millisecond}
					attend(l, visits)
					if o := over(limit, tested.jitter, visits); o > 0.01 {
						t.Errorf("over by %g", o)
					}
					if n := overtaken(visits, maxLatency); n > 0 {
						t.Errorf("the later caller overtook %d of 50", n)
					}
					if last := lastPass(visits); last > ideal(limit, visits)+2*maxLatency {
						t.Errorf("the last passed after %s", last)
					}
					checkNoLineIsLeft(t, l)
				})
			})
		}
	}
}

// Crowds come at once and half of each leaves: the rest passes at the full rate, in order, and
// later callers go behind.
func TestACrowdOfWhichHalfLeaves(t *testing.T) {
	for _, tested := range testedStores {
		for _, crowd := range []int{800, 2000} {
			t.Run(fmt.Sprint(tested.name, "/", crowd), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					limit := PerSecond(500).Burst(1)
					l := must(NewLimiter(tested.new(1), limit))
					visits, stay := crowdOf(crowd)
					attend(l, visits)
					if o := over(limit, tested.jitter, visits); o > 0.01 {
						t.Errorf("over by %g", o)
					}
					if n := overtaken(visits, maxLatency); n > 0 {
						t.Errorf("%d were overtaken", n)
					}
					stay = max(stay, len(passed(visits)))
					if ideal := time.Duration(stay) * 2 * time.Millisecond; lastPass(visits) > ideal+40*time.Millisecond {
						t.Errorf("the last of %d passed after %s; want %s", stay, lastPass(visits), ideal)
					}
					checkNoLineIsLeft(t, l)
				})
			})
		}
	}
}

// crowdOf is so many callers that come within a millisecond, of which half leaves within 97 ms, and
// a hundred that come later. It returns how many stay.
func crowdOf(crowd int) (visits []visit, stay int) {
	random := rand.New(rand.NewPCG(3, uint64(crowd)))
	visits = make([]visit, crowd+100)
	for i := range visits {
		v := &visits[i]
		*v = visit{n: 1, at: time.Duration(random.IntN(1000)) * time.Microsecond}
		switch {
		case i >= crowd:
			v.at = 600*time.Millisecond + time.Duration(i-crowd)*time.Microsecond
		case i%2 == 0:
			v.leaves = v.at + time.Duration(1+random.IntN(97_000))*time.Microsecond
			continue
		}
		stay++
	}
	return visits, stay
}

// Whatever callers do, and whatever the store answers, no interval holds more than the limit,
// callers of one process pass in the order in which they came, and none passes after its
// deadline. If all costs are equal and no answer is lost, no rate is lost either.
func TestWaitingKeepsItsPromises(t *testing.T) {
	for seed := range uint64(300) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { keepsPromises(t, seed) })
		})
	}
}

func keepsPromises(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 7))
	tested := testedStores[seed%3]
	rate, burst := 20+random.Int64N(400), 1+random.Int64N(5)
	limit, store := PerSecond(rate).Burst(burst), tested.new(seed)
	mixed, loses, processes := seed%5 == 1, seed%4 == 1, 1+int(seed/3%2)
	if network, ok := store.(*networkStore); ok && loses {
		network.lose = lossy(seed)
	}
	visits := make([][]visit, processes)
	var all sync.WaitGroup
	limiters := make([]*Limiter, processes)
	for p := range visits {
		visits[p] = randomVisits(random, int(10+random.Int64N(rate)), mixed, burst)
		limiters[p] = must(NewLimiter(store, limit))
		all.Go(func() { attend(limiters[p], visits[p]) })
	}
	all.Wait()
	if o := over(limit, tested.jitter, slices.Concat(visits...)); o > 0.01 {
		t.Errorf("seed %d: over by %g", seed, o)
	}
	for p := range visits {
		if n := overtaken(visits[p], maxLatency); n > 0 {
			t.Errorf("seed %d: %d were overtaken", seed, n)
		}
		checkNoLineIsLeft(t, limiters[p])
	}
	if mixed || loses || processes > 1 {
		return
	}
	// A grant that needed no wait stays charged if the caller has left.
	burstTime := time.Duration(burst-1) * time.Second / time.Duration(rate)
	if last, want := lastPass(visits[0]), ideal(limit, visits[0]); last > want+burstTime+2*maxLatency {
		t.Errorf("seed %d, %s, %s burst %d: the last passed after %s, not %s", seed, tested.name, limit, burst, last, want)
	}
}

// lossy loses one answer of five.
func lossy(seed uint64) func(Request) bool {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 9))
	return func(Request) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(5) == 0
	}
}

// randomVisits come within a second, mostly in crowds, and most leave at any moment.
func randomVisits(random *rand.Rand, n int, mixed bool, burst int64) []visit {
	visits := make([]visit, n)
	at := time.Duration(0)
	for i := range visits {
		if random.IntN(10) == 0 {
			at += time.Duration(random.IntN(200_000)) * time.Microsecond
		}
		visits[i] = visit{at: at + time.Duration(i)*time.Microsecond, n: 1}
		if mixed {
			visits[i].n += random.Int64N(burst)
		}
		if random.IntN(3) > 0 {
			shift := random.IntN(20)
			visits[i].leaves = visits[i].at + 1 + time.Duration(random.IntN(1<<shift))*time.Microsecond
		}
	}
	return visits
}

// ideal is when the last of those that passed would have, had only they come.
func ideal(l Limit, visits []visit) time.Duration {
	all := passed(visits)
	slices.SortFunc(all, func(a, b visit) int { return cmp.Compare(a.at, b.at) })
	rate := float64(l.Refill()) / float64(l.Period())
	level, now := 0., time.Duration(0)
	for _, v := range all {
		level = max(level-rate*float64(max(v.at-now, 0)), 0)
		now = max(now, v.at)
		if wait := (level + float64(v.n) - float64(l.Capacity())) / rate; wait > 0 {
			level, now = level-wait*rate, now+time.Duration(wait)
		}
		level += float64(v.n)
	}
	return now
}
