package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// closedLoop is callers that each ask for one decision after the other.
type closedLoop struct {
	contender Contender
	seq       Sequence
	latencies [][]uint32 // of each caller, in nanoseconds; the last ones, if there are many
}

// runClosedLoop lets callers ask for as long as span, with a context that cannot be cancelled.
func runClosedLoop(
	ctx context.Context, c Contender, seq Sequence, callers int, span time.Duration,
) (Sample, Answers, error) {
	ctx = context.WithoutCancel(ctx)
	l := closedLoop{c, seq, make([][]uint32, callers)}
	for i := range l.latencies {
		l.latencies[i] = make([]uint32, 0, (1<<20)/callers)
	}
	all, errs := make([]Answers, callers), make([]error, callers)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range callers {
		wg.Go(func() { all[i], errs[i] = l.caller(ctx, i, start.Add(span)) })
	}
	wg.Wait()
	elapsed := time.Since(start)
	var a Answers
	for i := range all {
		a.add(all[i])
	}
	if err := errors.Join(errs...); err != nil {
		return nil, a, err
	}
	p50, p99 := l.quantiles()
	return Sample{Rate: a.all() / elapsed.Seconds(), P50: p50, P99: p99}, a, nil
}

// quantiles are two quantiles of the latencies of all callers, in microseconds.
func (l closedLoop) quantiles() (p50, p99 float64) {
	sorted := slices.Concat(l.latencies...)
	slices.Sort(sorted)
	return percentile(sorted, 50), percentile(sorted, 99)
}

// percentile is that of sorted latencies in nanoseconds, in microseconds.
func percentile(sorted []uint32, percent int) float64 {
	return float64(sorted[len(sorted)*percent/100]) / 1e3
}

// caller asks until end, and once at least. It begins at its own place in the sequence.
func (l closedLoop) caller(
	ctx context.Context, i int, end time.Time,
) (a Answers, err error) {
	at, kept := l.seq.Len()*i/len(l.latencies), &l.latencies[i]
	for n, last := 0, time.Now(); n == 0 || last.Before(end); n++ {
		allowed, err := l.contender.Take(ctx, l.seq.Key((at+n)%l.seq.Len()))
		if err != nil {
			return a, err
		}
		now := time.Now()
		nanos := uint32(min(now.Sub(last), 1<<32-1))
		if len(*kept) < cap(*kept) {
			*kept = append(*kept, nanos)
		} else {
			(*kept)[n%cap(*kept)] = nanos
		}
		last = now
		if allowed {
			a.Granted++
		} else {
			a.Denied++
		}
	}
	return a, nil
}
