package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
)

// warmUp takes every key of the sequence once with a name of its own, as
// requests bring theirs, and checks the answers. What the contender keeps of
// the names is thereby on its account.
//
// The order is not that of the timed passes. If it were, contenders that keep an
// object a key would find these objects one beside the other, in the very order
// in which they are asked for, as no service does.
func warmUp(c Contender, seq Sequence) error {
	var a Answers
	for _, i := range random(warmSeed).Perm(seq.Len()) {
		ok, err := c.Take(strings.Clone(seq.Key(i)))
		if err != nil {
			return err
		}
		a = a.add(ok)
	}
	return a.check(false)
}

// add counts one more answer.
func (a Answers) add(allowed bool) Answers {
	if allowed {
		a.Granted++
	} else {
		a.Denied++
	}
	return a
}

// slice is what one timed run through a sequence gave.
type slice struct {
	Answers

	elapsed time.Duration
	mallocs uint64
}

// drive takes passes times through seq, divided among workers, with as many
// cores, and times it.
func drive(c Contender, seq Sequence, workers, passes int) (slice, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
	answers := make([]Answers, workers)
	errs := make([]error, workers)
	var before, after runtime.MemStats
	var wg sync.WaitGroup
	runtime.ReadMemStats(&before)
	start := time.Now()
	for w := range workers {
		lo, hi := seq.Len()*w/workers, seq.Len()*(w+1)/workers
		wg.Go(func() { answers[w], errs[w] = driveWorker(c, seq, lo, hi, passes) })
	}
	wg.Wait()
	s := slice{elapsed: time.Since(start)}
	runtime.ReadMemStats(&after)
	s.mallocs = after.Mallocs - before.Mallocs
	for w := range workers {
		if errs[w] != nil {
			return s, errs[w]
		}
		s.Granted += answers[w].Granted
		s.Denied += answers[w].Denied
	}
	return s, nil
}

// driveWorker is the timed loop: takes lo to hi of the sequence, passes times.
func driveWorker(c Contender, seq Sequence, lo, hi, passes int) (Answers, error) {
	var granted, takes int64
	for range passes {
		for i := lo; i < hi; i++ {
			ok, err := c.Take(seq.Key(i))
			if err != nil {
				return Answers{}, fmt.Errorf("key %q: %w", seq.Key(i), err)
			}
			if ok {
				granted++
			}
			takes++
		}
	}
	return Answers{Granted: granted, Denied: takes - granted}, nil
}

// sample turns the slice into metrics.
func (s slice) sample() Sample {
	takes := float64(s.Granted + s.Denied)
	return Sample{
		Nanos:  float64(s.elapsed.Nanoseconds()) / takes,
		Rate:   takes / s.elapsed.Seconds(),
		Allocs: float64(s.mallocs) / takes,
	}
}
