package demo

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// maxBatches bounds how many batches are decided at the same time, and with that
// what they hold of memory. Others wait for their turn.
const maxBatches = 8

// batch is what came of requests that were sent together, in each lane.
type batch [2][]outcome

// decide sends n requests through both lanes, and each request is decided
// separately: no more of them at the same time than there are slots, over all
// batches. If the store could not say, or not in time, it returns an error and
// those that were decided until then.
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
	for i, l := range d.lanes {
		done[i] = slices.DeleteFunc(done[i], func(o outcome) bool { return o.to.IsZero() })
		l.note(seen[i], done[i])
	}
	return done, context.Cause(ctx)
}

// decideOne sends one request through both lanes.
func (d *Demo) decideOne(ctx context.Context, into batch, i int64) error {
	return d.inSlot(ctx, func() error {
		for side, l := range d.lanes {
			o, err := l.take(ctx)
			if err != nil {
				return err
			}
			into[side][i] = o
		}
		return nil
	})
}

// inSlot asks the store by f when there is a slot for it.
func (d *Demo) inSlot(ctx context.Context, f func() error) error {
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
