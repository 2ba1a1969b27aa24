//go:build !race

// Thousands of timers in a bubble crash the race detector of Go 1.26: "ThreadSanitizer: CHECK
// failed: tsan_rtl.cpp".

package fallback_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/fallback"
)

// Ten callers in each millisecond wait for a store that stalls. That counts as one failure for each
// time budget, as one caller would see it.
func TestCallsThatOverlapAreOneFailure(t *testing.T) {
	for _, c := range []struct {
		stall time.Duration
		opens time.Duration // when the circuit opens; 0: it does not
	}{
		{60 * time.Millisecond, 0},
		{240 * time.Millisecond, 0}, // which is four failures
		{time.Second, 250 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, opened := time.Now(), time.Duration(0)
			store := &stalls{headgate.NewMemory(), start.Add(c.stall)}
			s := newStore(t, store, fallback.Options{Mode: fallback.Closed,
				OnChange: func(degraded bool, _ error) {
					if degraded {
						opened = time.Since(start)
					}
				}})
			var group sync.WaitGroup
			for range 300 {
				for range 10 {
					group.Go(func() {
						if _, err := s.Take(t.Context(), request("1000000/s")); err != nil {
							t.Error(err)
						}
					})
				}
				time.Sleep(time.Millisecond)
			}
			group.Wait()
			if opened < c.opens || opened > c.opens/50*51 {
				t.Errorf("after a stall of %s the circuit opened after %s; want %s",
					c.stall, opened, c.opens)
			}
			stats := s.Stats()
			if stats.Failures < 100 || stats.Failures != stats.Decisions && opened == 0 {
				t.Errorf("%s: %+v", c.stall, stats)
			}
		})
	}
}
