package demo

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// However many ask at once, the store is asked about no more than Parallel at the
// same time, and no more than maxBatches of them hold memory.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(time.Hour)
		d := newDemo(t, store)
		known := storeClock{store: slowStore(0)}
		if err := known.adjust(t.Context()); err != nil {
			t.Fatal(err)
		}
		d.clock.asked = known.asked // and so no question about it is under way
		before := heap()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if w := ask(d, "POST", "/api/requests", jsonType, `{"requests":10000}`); w.Code != 503 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
			all.Go(func() { ask(d, "GET", "/api/state", "", "") })
			all.Go(func() { ask(d, "POST", "/test", "", "") })
		}
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > 1000 {
			t.Errorf("%d goroutines", n)
		}
		if grown := int64(heap()) - int64(before); grown > 64<<20 {
			t.Errorf("the heap has grown by %d MB", grown>>20)
		}
		all.Wait()
		if high := store.highest.Load(); high > int64(cap(d.slots))+1 { // and the clock
			t.Errorf("the store was asked about %d at the same time, with %d slots", high, cap(d.slots))
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A slot is taken for as long as the store is asked, and given back then.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDemo(t, slowStore(time.Second))
		var all sync.WaitGroup
		var under, highest atomic.Int64
		for range 2 * cap(d.slots) {
			all.Go(func() {
				err := d.inSlot(t.Context(), func() error {
					highest.Store(max(highest.Load(), under.Add(1)))
					defer under.Add(-1)
					time.Sleep(time.Second)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		ctx, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if err := d.inSlot(ctx, func() error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("one more got a slot: %v", err)
		}
		all.Wait()
		if high := highest.Load(); high != int64(cap(d.slots)) {
			t.Errorf("%d at the same time, want %d", high, cap(d.slots))
		}
		if len(d.slots) != 0 {
			t.Errorf("%d slots are still taken", len(d.slots))
		}
	})
}

// Who goes away ends the batch, and frees what it took.
func TestCancelledBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(time.Second)
		d := newDemo(t, store)
		ask(d, "GET", "/api/state", "", "") // after which the clock is known
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan int, 1)
		go func() {
			r, w := request(ctx, "POST", "/api/requests", jsonType, `{"requests":10000}`)
			d.ServeHTTP(w, r)
			over <- w.Code
		}()
		time.Sleep(2500 * time.Millisecond)
		begun := time.Now()
		stop()
		<-over
		if took := time.Since(begun); took != 0 {
			t.Errorf("it went on for %s", took)
		}
		if len(d.slots)+len(d.batches) != 0 || store.under.Load() != 0 {
			t.Errorf("%d slots and %d batches are still taken, %d answers under way", len(d.slots), len(d.batches), store.under.Load())
		}
		if code := ask(d, "GET", "/api/state", "", "").Code; code != http.StatusOK {
			t.Errorf("the next gets %d", code)
		}
	})
}
