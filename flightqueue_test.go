package headgate

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func isFirst(w *flightWaiter) bool {
	select {
	case <-w.turn:
		return true
	default:
		return false
	}
}

// TestLineOfFlights lets callers come and leave at random, and compares with a slice.
func TestLineOfFlights(t *testing.T) {
	c := must(NewConcurrency(NewMemoryConcurrency(), 1, time.Minute))
	r := rand.New(rand.NewPCG(1, 2))
	var model []*flightWaiter
	var q *flightQueue
	for step := range 20_000 {
		if len(model) == 0 || r.IntN(100) < 49 {
			var w *flightWaiter
			q, w = c.join("k")
			model = append(model, w)
		} else {
			i := r.IntN(len(model)) * r.IntN(2) // the first every other time
			c.leave("k", q, model[i])
			model = slices.Delete(model, i, i+1)
		}
		if n := c.Waiting("k"); n != int64(len(model)) {
			t.Fatalf("step %d: %d wait; want %d", step, n, len(model))
		}
		for i, w := range model[:min(len(model), 3)] {
			if isFirst(w) != (i == 0) {
				t.Fatalf("step %d: number %d is told that it is first: %t", step, i, isFirst(w))
			}
		}
	}
	for _, w := range model {
		c.leave("k", q, w)
	}
	if len(c.queues) != 0 || c.waiting.Load() != 0 {
		t.Errorf("%d lines and %d who wait in the end", len(c.queues), c.waiting.Load())
	}
}

// blinking is a store that is gone while it is told to be.
type blinking struct {
	ConcurrencyStore

	gone atomic.Bool
}

func (b *blinking) AcquireFlight(ctx context.Context, r FlightRequest) (FlightDecision, error) {
	if b.gone.Load() {
		return FlightDecision{}, errors.New("the store is gone")
	}
	return b.ConcurrencyStore.AcquireFlight(ctx, r)
}

// TestLineOfAStoreThatIsGone: each of those who wait is told, and no one is left behind.
func TestLineOfAStoreThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &blinking{ConcurrencyStore: NewMemoryConcurrency()}
		c := must(NewConcurrency(store, 1, time.Minute))
		holder := begin(t, c, "k")
		var failed atomic.Int64
		for range 5 {
			go func() {
				if _, err := c.Wait(t.Context(), "k"); err != nil {
					failed.Add(1)
				}
			}()
		}
		synctest.Wait()
		store.gone.Store(true)
		if err := holder.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if failed.Load() != 5 || c.Waiting("k") != 0 {
			t.Errorf("%d were told, and %d wait", failed.Load(), c.Waiting("k"))
		}
		store.gone.Store(false)
		if _, err := c.Wait(t.Context(), "k"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
