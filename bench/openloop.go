package main

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// mostInFlight is how many decisions a paced load waits for at a time. Who arrives while
// there are as many is not taken, and is counted.
const mostInFlight = 2000

// lateAfter is when an answer counts as late.
const lateAfter = 10 * time.Millisecond

// notTaken stands for the time that a decision took which was not asked for.
const notTaken = -1

// arrivals are n moments of a span in ascending order, each anywhere in it: given their
// number, those of a Poisson process. They are the same in every run.
func arrivals(n int, span time.Duration) []time.Duration {
	r := random(paceSeed)
	due := make([]time.Duration, n)
	for i := range due {
		due[i] = time.Duration(r.Int64N(int64(span)))
	}
	slices.Sort(due)
	return due
}

// An openLoop asks for a decision whenever one is due, whether or not those before have
// been answered. So one slow answer is not the only one to tell of what made it slow.
type openLoop struct {
	c    Contender
	seq  Sequence
	due  []time.Duration
	most int // decisions in flight
}

// A pacedResult is what an open loop saw.
type pacedResult struct {
	Answers

	took    []time.Duration // from the moment it was due, or notTaken
	elapsed time.Duration
}

// run keeps the schedule and waits for the last answers. The pacer has a processor of
// its own, as far as the scheduler of Go is concerned, so that it takes none away from
// the contender while it sleeps.
func (l openLoop) run() (pacedResult, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1))
	res := pacedResult{took: make([]time.Duration, len(l.due))}
	var flying, granted, denied atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	start := time.Now()
	for i, due := range l.due {
		sleepUntil(start.Add(due))
		if failed.Load() != nil {
			break
		}
		if flying.Load() >= int64(l.most) {
			res.took[i] = notTaken
			continue
		}
		flying.Add(1)
		wg.Go(func() {
			allowed, err := l.c.Take(l.seq.Key(i % l.seq.Len()))
			res.took[i] = time.Since(start) - due
			flying.Add(-1)
			switch {
			case err != nil:
				failed.CompareAndSwap(nil, &err)
			case allowed:
				granted.Add(1)
			default:
				denied.Add(1)
			}
		})
	}
	wg.Wait()
	res.elapsed = time.Since(start)
	res.Answers = Answers{Granted: granted.Load(), Denied: denied.Load()}
	if err := failed.Load(); err != nil {
		return res, *err
	}
	return res, nil
}

// sleepUntil asks the kernel and not Go's timers, which wake an idle process at whole
// milliseconds.
func sleepUntil(t time.Time) {
	for d := time.Until(t); d > 0; d = time.Until(t) {
		span := syscall.NsecToTimespec(d.Nanoseconds())
		_ = syscall.Nanosleep(&span, nil) // a signal may end it: the loop looks at the clock
	}
}

// sample turns what was seen into metrics.
func (r pacedResult) sample() Sample {
	all := newLatencies(1, len(r.took))
	late := 0
	for _, took := range r.took {
		if took == notTaken || took > lateAfter {
			late++
		}
		if took != notTaken {
			all[0].add(took)
		}
	}
	q := quantiles(all, 0.50, 0.99, 0.999, 1)
	return Sample{
		Rate: float64(all[0].n) / r.elapsed.Seconds(),
		P50:  q[0], P99: q[1], P999: q[2], Longest: q[3],
		Late:     float64(late) / float64(len(r.took)),
		NotTaken: 1 - float64(all[0].n)/float64(len(r.took)),
	}
}
