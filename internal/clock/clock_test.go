package clock

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestClockTellsTheWallClockInWholeMicroseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(999 * time.Nanosecond) // the clock starts between two microseconds
		var c Clock
		c.Start()
		for _, d := range []time.Duration{0, time.Nanosecond, time.Nanosecond, 998, 1000, 1500, time.Second, time.Second - 1, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
			time.Sleep(d)
			now, wall := c.Micros(), time.Now().UnixMicro()
			if now > wall || now < wall-1 {
				t.Errorf("after another %v the clock tells %d, the wall clock %d", d, now, wall)
			}
		}
	})
}

// The bubble's clocks never part, so this moves what the clock knows of the wall
// clock instead of the wall clock.
func TestClockFollowsTheWallClockAheadButNeverBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		c.Start()
		hour := time.Hour.Microseconds()

		c.offset.Add(-hour) // as if the wall clock were set an hour ahead
		before := c.Micros()
		time.Sleep(time.Second - 1)
		if now := c.Micros(); now != before+time.Second.Microseconds()-1 {
			t.Errorf("within a second of the last look, the clock moved by %d", now-before)
		}
		time.Sleep(time.Nanosecond)
		if now := c.Micros(); now != time.Now().UnixMicro() {
			t.Errorf("at the next look, it tells %d and the wall clock %d", now, time.Now().UnixMicro())
		}

		c.offset.Add(hour) // as if the wall clock were set an hour back
		last := c.Micros()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			now := c.Micros()
			if now != last+100_000 {
				t.Fatalf("the clock moved by %d in 100ms", now-last)
			}
			last = now
		}
	})
}

func TestClockNeverRunsBackForAnyGoroutine(t *testing.T) {
	var c Clock
	c.Start()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			last := c.Micros()
			for i := range 20_000 {
				if i%1000 == 0 {
					c.next.Store(0) // look now
				}
				now := c.Micros()
				if now < last {
					t.Errorf("the clock ran back by %d", last-now)
				}
				last = now
			}
		})
	}
	group.Wait()
}

// Once, a goroutine that was held up between reading the monotonic clock and the wall
// clock took the delay for a jump of the wall clock, and the clock ran ahead.
func TestClockHeldUpWhileItCompares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		c.Start()
		time.Sleep(2 * time.Second)
		time.Sleep(50 * time.Millisecond)
		c.compare()
		if now, wall := c.Micros(), time.Now().UnixMicro(); now != wall {
			t.Errorf("the clock is %dµs ahead of the wall clock", now-wall)
		}
	})
}
