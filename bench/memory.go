package main

import (
	"fmt"
	"runtime"
)

// memoryStore is the Store of the cells measured in this process.
const memoryStore = "memory"

// coreCounts are the cores that each memory workload runs on, one goroutine a core.
var coreCounts = []int{1, 2}

// A memoryRun measures a field of contenders in this process.
type memoryRun struct {
	store     string // memoryStore or httpStore
	field     []Entry
	workloads []*Workload
	out       *Results
}

// round measures each contender on each workload once. Every contender is
// opened anew and alone, so that no other's heap is on its garbage collector.
func (m memoryRun) round(n int) error {
	for _, w := range m.workloads {
		for _, e := range rotated(m.field, n) {
			if !e.runs(w) {
				continue
			}
			if err := m.measure(e, w); err != nil {
				return fmt.Errorf("%s, %s: %w", e.Name, w.Name, err)
			}
		}
	}
	return nil
}

// measure opens e, fills it, times it on one core and on two, and checks that
// it gave the answers the workload claims.
func (m memoryRun) measure(e Entry, w *Workload) error {
	before := heapInUse()
	c, err := e.Open(Setup{Terms: w.memoryTerms(len(coreCounts)), Keys: w.keys()})
	if err != nil {
		return err
	}
	if err := warmUp(c, w.Seq); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	if w.Weigh {
		cell := Cell{m.store, count(w.keys()) + " keys resident", 0, e.Name}
		m.out.Add(cell, weigh(before, w.keys()))
	}
	if err := m.slices(e, w, c); err != nil {
		return err
	}
	if err := exhausted(c, w); err != nil {
		return err
	}
	err = closeContender(c)
	runtime.KeepAlive(c)
	return err
}

// slices times w on each number of cores.
func (m memoryRun) slices(e Entry, w *Workload, c Contender) error {
	var one float64
	for _, cores := range coreCounts {
		runtime.GC()
		s, err := drive(c, w.Seq, cores, w.Passes)
		if err != nil {
			return err
		}
		if err := s.check(w.Denied); err != nil {
			return err
		}
		sample := s.sample()
		if cores == 1 {
			one = sample[Nanos]
		} else {
			sample[Scaling] = sample[Nanos] / one
		}
		m.out.Add(Cell{m.store, w.Name, cores, e.Name}, sample)
	}
	return nil
}

// exhausted checks that the buckets of an exact workload, sized to the passes
// made so far, are all empty now: that each pass touched each key, and that
// the contender counted every take of it.
func exhausted(c Contender, w *Workload) error {
	if !w.Exact {
		return nil
	}
	s, err := drive(c, w.Seq, 1, 1)
	if err != nil {
		return err
	}
	if err := s.check(true); err != nil {
		return fmt.Errorf("after as many takes of each key as its bucket holds: %w", err)
	}
	return nil
}
