package demo

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// However many batches are sent at once, maxBatches of them are decided at the same time and hold
// memory.
func TestManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(time.Hour)
		d := newDemo(t, store)
		before := heap()
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if w := ask(d, "POST", "/api/requests", jsonType, `{"requests":10000}`); w.Code != 503 {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		synctest.Wait()
		if n := runtime.NumGoroutine(); n > 500 {
			t.Errorf("%d goroutines", n)
		}
		if grown := int64(heap()) - int64(before); grown > 64<<20 {
			t.Errorf("the heap has grown by %d MB", grown>>20)
		}
		all.Wait()
		if high := store.highest.Load(); high != maxBatches*parallel {
			t.Errorf("the store was asked about %d at the same time, want %d", high, maxBatches*parallel)
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// Who goes away ends the batch, and frees what it took.
func TestCancelledBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := slowStore(time.Second)
		d := newDemo(t, store)
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
		if len(d.batches) != 0 || store.under.Load() != 0 {
			t.Errorf("%d batches are still being decided, %d answers under way", len(d.batches), store.under.Load())
		}
		if code := ask(d, "GET", "/api/state", "", "").Code; code != http.StatusOK {
			t.Errorf("the next gets %d", code)
		}
	})
}
