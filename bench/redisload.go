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
				r.out.Add(Cell{redisStore, w.Name, callers, e.Name}, s)
			}
		}
	}
	return nil
}

// measure runs one cell on an empty database and checks the answers and the
// number of keys that came into being.
func (r redisRun) measure(ctx context.Context, e Entry, w *Workload, callers int) (Sample, error) {
	if err := r.server.admin.FlushAll(ctx).Err(); err != nil {
		return nil, err
	}
	c, err := e.Open(Setup{Terms: w.redisTerms(), Keys: w.keys(), Addr: r.server.Addr})
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeContender(c) }()
	touched := newTouched(w.Seq)
	if err := warmRedis(c, w, max(callers, 64), touched); err != nil {
		return nil, fmt.Errorf("warm-up: %w", err)
	}
	s, err := r.timed(ctx, c, w, callers, touched)
	if err != nil {
		return nil, err
	}
	return s, r.server.checkSize(ctx, touched.keys()*e.redisKeys())
}

// timed runs the closed loop between two readings of the server's clock.
func (r redisRun) timed(ctx context.Context, c Contender, w *Workload, callers int, t *touched) (Sample, error) {
	loop := newClosedLoop(c, w.Seq, callers)
	runtime.GC()
	cpu, err := r.server.cpuSeconds(ctx)
	if err != nil {
		return nil, err
	}
	s, err := loop.run(r.span)
	if err != nil {
		return nil, err
	}
	after, err := r.server.cpuSeconds(ctx)
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
	sample[RedisCPU] = (after - cpu) * 1e6 / float64(s.Granted+s.Denied)
	q := quantiles(loop.lats, 0.50, 0.99)
	sample[P50], sample[P99] = q[0], q[1]
	return sample, nil
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
