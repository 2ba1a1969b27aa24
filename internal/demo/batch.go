package demo

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	// maxBatches bounds how many batches are decided at the same time, and so their memory. Other
	// batches wait.
	maxBatches = 8

	// parallel is how many requests of a batch are decided at the same time. A store across a
	// network is slow with few.
	parallel = 16
)

// batch holds the outcomes of requests that were sent together, in each lane.
type batch [2][]outcome

// decide sends n requests through both lanes. Each request is decided separately. If the store
// fails or is late, it returns an error and the requests that were decided before.
func (d *Demo) decide(ctx context.Context, n int) (batch, error) {
	ctx, end := context.WithTimeout(ctx, patience)
	defer end()
	select {
	case d.batches <- struct{}{}:
		defer func() { <-d.batches }()
	case <-ctx.Done():
		return batch{}, ctx.Err()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun := [2]results{d.lanes[0].results(), d.lanes[1].results()}
	done := batch{make([]outcome, n), make([]outcome, n)}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, parallel) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := d.decideOne(ctx, done, i); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	for i, l := range d.lanes {
		done[i] = slices.DeleteFunc(done[i], func(o outcome) bool { return o.to.IsZero() })
		l.note(begun[i], done[i], d.clock.offset())
	}
	return done, context.Cause(ctx)
}

// decideOne sends one request through both lanes.
func (d *Demo) decideOne(ctx context.Context, into batch, i int64) error {
	for side, l := range d.lanes {
		o, err := l.take(ctx)
		if err != nil {
			return err
		}
		into[side][i] = o
	}
	return nil
}
