package main

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// arrival is a planned call.
type arrival struct {
	at  time.Duration // from the start
	key int           // in the sequence
}

// poisson plans calls at random times, as many independent users make them: rate a second on
// average, each for a random one of a number of keys.
func poisson(seed uint64, rate int, span time.Duration, keys int) (plan []arrival) {
	r := random(seed)
	for at := 0.0; ; {
		at += r.ExpFloat64() / float64(rate)
		if at >= span.Seconds() {
			return plan
		}
		plan = append(plan, arrival{time.Duration(at * 1e9), r.IntN(keys)})
	}
}

// openLoop makes calls at planned times, whether or not earlier ones have been answered.
type openLoop struct {
	contender Contender
	seq       Sequence
	plan      []arrival
	start     time.Time

	latencies []uint32 // of each call, from its planned time, in nanoseconds
	granted   atomic.Int64
	failed    atomic.Pointer[error]
	underWay  chan struct{}
	calls     sync.WaitGroup
}

// With this many calls under way, no other call is made: a contender that cannot keep up answers
// late, but does not fill the memory.
const mostUnderWay = 2048

// runOpenLoop makes the calls of plan, and waits for the answers. The CPU time is that of this
// process without the thread that makes the calls.
func runOpenLoop(
	ctx context.Context, c Contender, seq Sequence, plan []arrival,
) (Sample, Answers, error) {
	// A thread that sleeps in a system call may hold one of GOMAXPROCS.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 1))
	l := openLoop{
		contender: c, seq: seq, plan: plan, start: time.Now(),
		latencies: make([]uint32, len(plan)), underWay: make(chan struct{}, mostUnderWay),
	}
	before, generator := cpuOf(syscall.RUSAGE_SELF), make(chan time.Duration)
	go func() { generator <- l.generate(context.WithoutCancel(ctx)) }()
	own := <-generator
	l.calls.Wait()
	used, elapsed := cpuOf(syscall.RUSAGE_SELF)-before-own, time.Since(l.start)
	if err := l.failed.Load(); err != nil {
		return nil, Answers{}, *err
	}
	granted, all := l.granted.Load(), float64(len(plan))
	slices.Sort(l.latencies)
	return Sample{
		Rate: all / elapsed.Seconds(), ClientCPU: float64(used.Nanoseconds()) / 1e3 / all,
		P50: percentile(l.latencies, 50), P99: percentile(l.latencies, 99),
	}, Answers{granted, int64(len(plan)) - granted}, nil
}

// generate starts a goroutine for each call at its time, as a server does for each connection. It
// returns the CPU time that it used.
func (l *openLoop) generate(ctx context.Context) time.Duration {
	ownThread()
	before := threadCPU()
	for i := range l.plan {
		sleepUntil(l.start.Add(l.plan[i].at))
		l.underWay <- struct{}{}
		l.calls.Go(func() { l.call(ctx, i) })
	}
	return threadCPU() - before
}

// call makes call i with a context that can be cancelled, as that of an HTTP request can.
func (l *openLoop) call(ctx context.Context, i int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	allowed, err := l.contender.Take(ctx, l.seq.Key(l.plan[i].key))
	late := time.Since(l.start.Add(l.plan[i].at))
	l.latencies[i] = uint32(min(late, 1<<32-1))
	if err != nil {
		l.failed.Store(&err)
	}
	if allowed {
		l.granted.Add(1)
	}
	<-l.underWay
}

// cpuOf is the processor time, user and system, of this process or thread.
func cpuOf(who int) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(who, &usage); err != nil {
		panic(err) // cannot happen: who is known
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
