package main

import (
	"runtime"
	"sync"
	"time"
)

// latencyRoom is how many latencies a cell keeps.
const latencyRoom = 1 << 20

// A closedLoop is callers who ask for one decision after another, each from
// its own place in the sequence.
type closedLoop struct {
	c    Contender
	seq  Sequence
	lats []latencies
}

func newClosedLoop(c Contender, seq Sequence, callers int) closedLoop {
	return closedLoop{c, seq, newLatencies(callers, latencyRoom)}
}

// from is the place in the sequence where caller i begins.
func (l closedLoop) from(i int) int { return l.seq.Len() * i / len(l.lats) }

// run lets all callers ask for as long as span.
func (l closedLoop) run(span time.Duration) (slice, error) {
	answers := make([]Answers, len(l.lats))
	errs := make([]error, len(l.lats))
	var before, after runtime.MemStats
	var wg sync.WaitGroup
	runtime.ReadMemStats(&before)
	start := time.Now()
	for i := range l.lats {
		wg.Go(func() { answers[i], errs[i] = l.caller(i, start.Add(span)) })
	}
	wg.Wait()
	s := slice{elapsed: time.Since(start)}
	runtime.ReadMemStats(&after)
	s.mallocs = after.Mallocs - before.Mallocs
	for i := range l.lats {
		if errs[i] != nil {
			return s, errs[i]
		}
		s.Granted += answers[i].Granted
		s.Denied += answers[i].Denied
	}
	return s, nil
}

// caller asks until the end has come, and once at least, so that there is something to
// divide by on a machine that is busy elsewhere.
func (l closedLoop) caller(i int, end time.Time) (a Answers, err error) {
	at, lat := l.from(i), &l.lats[i]
	for last := time.Now(); lat.n == 0 || last.Before(end); {
		allowed, err := l.c.Take(l.seq.Key(at))
		if err != nil {
			return a, err
		}
		now := time.Now()
		lat.add(now.Sub(last))
		last = now
		a = a.add(allowed)
		if at++; at == l.seq.Len() {
			at = 0
		}
	}
	return a, nil
}
