package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// coreCounts are the cores that each workload in this process runs on, with a goroutine for each.
var coreCounts = []int{1, 2}

// inProcess measures contenders in this process, one after the other, each on a fresh heap.
type inProcess struct {
	part      string
	field     []Entry
	workloads []Workload
	out       *Results
}

func (p inProcess) round(n int) error {
	for _, w := range p.workloads {
		for _, e := range shuffled(p.field, n) {
			if e.OneKey && w.Keys > 1 {
				continue
			}
			if err := p.measure(e, w); err != nil {
				return fmt.Errorf("%s, %s: %w", e.Name, w.Name, err)
			}
		}
	}
	return nil
}

// measure opens e, takes each key once, times it on each number of cores, and checks all answers.
func (p inProcess) measure(e Entry, w Workload) error {
	before := heapInUse()
	c, err := e.Open(Setup{Terms: w.memoryTerms(len(coreCounts)), Keys: w.Keys})
	if err != nil {
		return err
	}
	granted, err := warmUp(c, w.Seq)
	if err != nil {
		return err
	}
	bytes := (heapInUse() - before) / float64(w.Keys)
	var one Sample
	for _, cores := range coreCounts {
		sample, a, err := timed(c, w, cores)
		if err != nil {
			return err
		}
		granted.add(a)
		if cores == 1 {
			one = sample
		} else {
			sample[Scaling] = sample[Nanos] / one[Nanos]
		}
		if cores == 1 && w.Keys > 1 {
			sample[Bytes] = bytes
		}
		p.out.Add(Cell{p.part, w.Name, cores, e.Name}, sample)
	}
	if e.NoLimit {
		return closeContender(c)
	}
	return errors.Join(granted.check(false), exhausted(c, w), closeContender(c))
}

// exhausted checks that the buckets, sized to the takes so far, are all empty now: that each key
// was taken, and that the contender counted every take.
func exhausted(c Contender, w Workload) error {
	a, err := takeAll(context.Background(), c, w.Seq, 0, w.Seq.Len(), 1)
	if err != nil {
		return err
	}
	if err := a.check(true); err != nil {
		return fmt.Errorf("after as many takes as the buckets hold: %w", err)
	}
	return nil
}

// timed runs w on a number of cores, and returns what it measured and the answers.
func timed(c Contender, w Workload, cores int) (Sample, Answers, error) {
	runtime.GC()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	all, errs := make([]Answers, cores), make([]error, cores)
	var before, after runtime.MemStats
	ctx := context.Background()
	var wg sync.WaitGroup
	runtime.ReadMemStats(&before)
	start := time.Now()
	for i := range cores {
		lo, hi := w.Seq.Len()*i/cores, w.Seq.Len()*(i+1)/cores
		wg.Go(func() { all[i], errs[i] = takeAll(ctx, c, w.Seq, lo, hi, w.Passes) })
	}
	wg.Wait()
	elapsed := time.Since(start)
	runtime.ReadMemStats(&after)
	var a Answers
	for i := range all {
		a.add(all[i])
	}
	return Sample{
		Nanos:  float64(elapsed.Nanoseconds()) / a.all(),
		Allocs: float64(after.Mallocs-before.Mallocs) / a.all(),
	}, a, errors.Join(errs...)
}

// heapInUse is the size of all reachable objects.
func heapInUse() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // frees what finalizers and pools released in the first
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
