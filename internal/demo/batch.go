package demo

import (
	"context"
	"sync"
	"sync/atomic"
)

// batch is what came of requests that were sent together, in each lane.
type batch [2][]outcome

// decide sends n requests through both lanes, and each request is decided
// separately: no more of them at the same time than there are slots, over all
// batches. If the store could not say, those decided until then stay charged.
func (d *Demo) decide(ctx context.Context, n int) (batch, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	seen := [2]*most{d.lanes[0].seen(), d.lanes[1].seen()}
	done := batch{make([]outcome, n), make([]outcome, n)}
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(n, cap(d.slots)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := d.decideOne(ctx, done, i); err != nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); err != nil {
		return batch{}, err
	}
	for i, l := range d.lanes {
		l.note(seen[i], done[i])
	}
	return done, nil
}

// decideOne sends one request through both lanes.
func (d *Demo) decideOne(ctx context.Context, into batch, i int64) (err error) {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for side, l := range d.lanes {
		if into[side][i], err = l.take(ctx); err != nil {
			return err
		}
	}
	return nil
}
