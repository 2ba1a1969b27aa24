package main

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// redisStore is the Store of the cells measured through Redis.
const redisStore = "redis"

// A redisRun measures a field of Redis contenders on one server.
type redisRun struct {
	store     string // redisStore or batchingStore
	field     []Entry
	workloads []*Workload
	levels    []int         // callers at once
	span      time.Duration // how long a cell runs in a round
	server    *redisServer
	out       *Results
}

// round measures each contender once on each workload and level.
func (r redisRun) round(ctx context.Context, n int) error {
	for _, w := range r.workloads {
		for _, callers := range r.levels {
			for _, e := range rotated(r.field, n) {
				if !e.runs(w) {
					continue
				}
				s, err := r.measure(ctx, e, w, callers)
				if err != nil {
					return fmt.Errorf("%s, %s, %d callers: %w", e.Name, w.Name, callers, err)
				}
				r.out.Add(Cell{r.store, w.Name, callers, e.Name}, s)
			}
		}
	}
	return nil
}

// measure runs one cell, as many callers in a closed loop.
func (r redisRun) measure(ctx context.Context, e Entry, w *Workload, callers int) (sample Sample, err error) {
	err = r.server.alone(ctx, e, w, max(callers, 64), func(c Contender, t *touched) error {
		sample, err = r.timed(ctx, c, w, callers, t)
		return err
	})
	return sample, err
}

// timed runs the closed loop between two readings of the processors' clocks.
func (r redisRun) timed(ctx context.Context, c Contender, w *Workload, callers int, t *touched) (Sample, error) {
	loop := newClosedLoop(c, w.Seq, callers)
	runtime.GC()
	before, err := r.server.processorTime(ctx)
	if err != nil {
		return nil, err
	}
	s, err := loop.run(r.span)
	if err != nil {
		return nil, err
	}
	after, err := r.server.processorTime(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.check(w.Denied); err != nil {
		return nil, err
	}
	for i := range loop.lats {
		t.mark(loop.from(i), loop.lats[i].n)
	}
	sample := s.sample()
	after.into(sample, before, s.Granted+s.Denied)
	q := quantiles(loop.lats, 0.50, 0.99)
	sample[P50], sample[P99] = q[0], q[1]
	return sample, nil
}

// alone lets measure run on a contender that was opened on an empty database and
// brought into a steady state by callers, and then checks the number of keys that came
// into being. Measure marks what it touches.
func (s *redisServer) alone(ctx context.Context, e Entry, w *Workload, callers int, measure func(Contender, *touched) error) error {
	if err := s.admin.FlushAll(ctx).Err(); err != nil {
		return err
	}
	c, err := e.Open(Setup{Terms: w.redisTerms(), Keys: w.keys(), Addr: s.Addr})
	if err != nil {
		return err
	}
	defer func() { _ = closeContender(c) }()
	t := newTouched(w.Seq)
	if err := warmRedis(c, w, callers, t); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	if err := measure(c, t); err != nil {
		return err
	}
	return s.checkSize(ctx, t.keys()*e.redisKeys(), e.ExtraKeys)
}

// warmRedis makes the first w.Warm takes of the sequence, so that connections
// are open, scripts are loaded and keys are there.
func warmRedis(c Contender, w *Workload, callers int, t *touched) error {
	var wg sync.WaitGroup
	errs := make([]error, callers)
	for i := range callers {
		lo, hi := w.Warm*i/callers, w.Warm*(i+1)/callers
		wg.Go(func() {
			var a Answers
			if a, errs[i] = driveWorker(c, w.Seq, lo, hi, 1); errs[i] == nil {
				errs[i] = a.check(false)
			}
		})
	}
	wg.Wait()
	t.mark(0, w.Warm)
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// touched notes which keys of a sequence were taken.
type touched struct {
	seq  Sequence
	seen map[uint32]struct{}
}

func newTouched(seq Sequence) *touched { return &touched{seq, make(map[uint32]struct{})} }

// mark notes n takes beginning at take from, round and round.
func (t *touched) mark(from, n int) {
	for i := range min(n, t.seq.Len()) {
		t.seen[t.seq.ids[(from+i)%t.seq.Len()]] = struct{}{}
	}
}

// keys is the number of different keys taken.
func (t *touched) keys() int { return len(t.seen) }
