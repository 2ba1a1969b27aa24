package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// A gateRun measures those that make callers wait.
type gateRun struct {
	field []Entry
	pass  *Workload     // what passes where nobody waits
	span  time.Duration // that a crowd waits
	out   *Results
}

// round measures each contender once: what a pass costs that nobody waits for, and what
// a crowd sees that always waits.
func (r gateRun) round(n int) error {
	for _, measure := range []func(Entry) error{r.passes, r.crowd} {
		for _, e := range rotated(r.field, n) {
			if err := measure(e); err != nil {
				return fmt.Errorf("%s: %w", e.Name, err)
			}
		}
	}
	return nil
}

// passes times passes at a rate so high that nobody waits.
func (r gateRun) passes(e Entry) error {
	var one float64
	for _, cores := range coreCounts {
		c, err := e.Open(Setup{Terms: openTerms(), Keys: 1})
		if err != nil {
			return err
		}
		runtime.GC()
		s, err := drive(c, r.pass.Seq, cores, r.pass.Passes)
		if err != nil {
			return err
		}
		sample := s.sample()
		if cores == 1 {
			one = sample[Nanos]
		} else {
			sample[Scaling] = sample[Nanos] / one
		}
		r.out.Add(Cell{gateStore, "nobody waits", cores, e.Name}, sample)
	}
	return nil
}

// crowd lets callers wait again and again, and looks for the window that saw most of them
// pass, by what they saw themselves.
func (r gateRun) crowd(e Entry) error {
	c, err := e.Open(Setup{Terms: crowdTerms(), Keys: 1})
	if err != nil {
		return err
	}
	seen, err := watch(c, crowdCallers, r.span)
	if err != nil {
		return err
	}
	if len(seen) < crowdCallers {
		return fmt.Errorf("%d passes of %d callers", len(seen), crowdCallers)
	}
	r.out.Add(Cell{gateStore, crowdName, crowdCallers, e.Name}, Sample{
		Most: float64(mostInAnyWindow(seen, crowdPeriod)),
		Part: partOf(seen, crowdLimit, crowdPeriod),
	})
	return nil
}

// watch returns the moments, in order, at which callers saw that they had passed.
func watch(c Contender, callers int, span time.Duration) ([]time.Time, error) {
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	seen := make([][]time.Time, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for ctx.Err() == nil && errs[i] == nil {
				_, errs[i] = c.Take("")
				seen[i] = append(seen[i], time.Now())
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	all := slices.Concat(seen...)
	slices.SortFunc(all, time.Time.Compare)
	return all, nil
}

// mostInAnyWindow is the largest number of moments within less than a period.
func mostInAnyWindow(seen []time.Time, period time.Duration) (most int) {
	first := 0
	for i, at := range seen {
		for at.Sub(seen[first]) >= period {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// partOf is the rate of whole turns of limit passes over the rate that is allowed.
// A run that is shorter than two turns tells nothing, and counts as 0.
func partOf(seen []time.Time, limit int, period time.Duration) float64 {
	turns := (len(seen) - 1) / limit
	if turns < 2 {
		return 0
	}
	return float64(turns-1) * period.Seconds() / seen[turns*limit].Sub(seen[limit]).Seconds()
}
