package main

import (
	"context"
	"fmt"
	"runtime"
	"time"
)

// pacedStore is the Store of the cells measured under a paced load on Redis.
const pacedStore = "paced"

// pacedField is every contender that keeps its state in Redis, and one that does nothing:
// what it seems to take is the harness, and is in everybody's numbers.
func pacedField() []Entry {
	return append(redisField(), Entry{Name: "nobody, the harness alone", Open: openNobody, RedisKeys: noKeys})
}

// nobody grants without asking anybody.
type nobody struct{}

func openNobody(Setup) (Contender, error) { return nobody{}, nil }

func (nobody) Take(string) (bool, error) { return true, nil }

// A pacedRun measures a field of Redis contenders that are asked by a schedule, however
// long they take.
type pacedRun struct {
	field  []Entry
	loads  []*pacedLoad
	server *redisServer
	out    *Results
}

// A pacedLoad is a workload with the moments at which it asks.
type pacedLoad struct {
	*Workload

	due []time.Duration // since the beginning, ascending
}

// newPacedLoad asks for the keys of w at a rate a second for as long as span. Arrivals
// are as independent of each other as those of many clients.
func newPacedLoad(w *Workload, rate int, span time.Duration) *pacedLoad {
	paced := *w
	paced.Name = fmt.Sprintf("%s, paced %s/s", w.Name, count(rate))
	return &pacedLoad{&paced, arrivals(int(float64(rate)*span.Seconds()), span)}
}

// round measures each contender once under each load.
func (r pacedRun) round(ctx context.Context, n int) error {
	for _, l := range r.loads {
		for _, e := range rotated(r.field, n) {
			if !e.runs(l.Workload) {
				continue
			}
			s, err := r.measure(ctx, e, l)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", e.Name, l.Name, err)
			}
			r.out.Add(Cell{pacedStore, l.Name, 0, e.Name}, s)
		}
	}
	return nil
}

// measure runs one cell.
func (r pacedRun) measure(ctx context.Context, e Entry, l *pacedLoad) (sample Sample, err error) {
	err = r.server.alone(ctx, e, l.Workload, 64, func(c Contender, t *touched) error {
		sample, err = r.timed(ctx, openLoop{c, l.Seq, l.due, mostInFlight}, t, l.Denied)
		return err
	})
	return sample, err
}

// timed runs the open loop between two readings of the processors' clocks.
func (r pacedRun) timed(ctx context.Context, loop openLoop, t *touched, denied bool) (Sample, error) {
	runtime.GC()
	before, err := r.server.processorTime(ctx)
	if err != nil {
		return nil, err
	}
	res, err := loop.run()
	if err != nil {
		return nil, err
	}
	after, err := r.server.processorTime(ctx)
	if err != nil {
		return nil, err
	}
	if err := res.check(denied); err != nil {
		return nil, err
	}
	for i, took := range res.took {
		if took != notTaken {
			t.mark(i%loop.seq.Len(), 1)
		}
	}
	sample := res.sample()
	after.into(sample, before, res.Granted+res.Denied)
	return sample, nil
}
