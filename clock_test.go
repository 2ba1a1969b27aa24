package headgate

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestClockTellsTheWallClockInWholeMicroseconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(999 * time.Nanosecond) // the clock starts between two microseconds
		var c clock
		c.start()
		for _, d := range []time.Duration{0, time.Nanosecond, time.Nanosecond, 998, 1000, 1500, time.Second, time.Second - 1, time.Hour, 24 * time.Hour, 365 * 24 * time.Hour} {
			time.Sleep(d)
			now, wall := c.micros(), time.Now().UnixMicro()
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
		var c clock
		c.start()
		hour := time.Hour.Microseconds()

		c.ahead.Add(-hour) // as if the wall clock were set an hour ahead
		before := c.micros()
		time.Sleep(time.Second - 1)
		if now := c.micros(); now != before+time.Second.Microseconds()-1 {
			t.Errorf("within a second of the last look, the clock moved by %d", now-before)
		}
		time.Sleep(time.Nanosecond)
		if now := c.micros(); now != time.Now().UnixMicro() {
			t.Errorf("at the next look, it tells %d and the wall clock %d", now, time.Now().UnixMicro())
		}

		c.ahead.Add(hour) // as if the wall clock were set an hour back
		last := c.micros()
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			now := c.micros()
			if now != last+100_000 {
				t.Fatalf("the clock moved by %d in 100ms", now-last)
			}
			last = now
		}
	})
}

func TestClockNeverRunsBackForAnyGoroutine(t *testing.T) {
	var c clock
	c.start()
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			last := c.micros()
			for i := range 20_000 {
				if i%1000 == 0 {
					c.next.Store(0) // look now
				}
				now := c.micros()
				if now < last {
					t.Errorf("the clock ran back by %d", last-now)
				}
				last = now
			}
		})
	}
	group.Wait()
}

// What the store's clock is for: time given by At and time that passes are one.
func TestMemoryTellsTheTimeItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(10)
		l := TokenBucket(1, 1, time.Second)
		allowed := func(at time.Time) bool {
			return must(m.Take(t.Context(), Request{Key: "k", Limit: l, Cost: 1, At: at})).Allowed()
		}
		for i, c := range []struct {
			wait    time.Duration
			at      time.Duration // since now; 0: the store's own clock
			allowed bool
			remark  string
		}{
			{0, 0, true, "the first"},
			{time.Second - time.Microsecond, 0, false, "a microsecond early"},
			{time.Microsecond, 0, true, "in time"},
			{0, time.Second, true, "at a time that has not come"},
			{time.Second, 0, false, "by when it has been taken"},
			{time.Second, 0, true, "and a second later it is back"},
		} {
			time.Sleep(c.wait)
			at := time.Time{}
			if c.at != 0 {
				at = time.Now().Add(c.at)
			}
			if allowed(at) != c.allowed {
				t.Errorf("row %d (%s): allowed %v", i+1, c.remark, !c.allowed)
			}
		}
	})
}

// Parts of a microsecond do not count.
func TestTimesAreCutToMicroseconds(t *testing.T) {
	m := NewMemory(10)
	l := TokenBucket(1, 1, time.Second)
	for i, c := range []struct {
		after   time.Duration
		allowed bool
	}{{999, true}, {time.Second - 1, false}, {time.Second, true}, {2*time.Second + 500, true}, {3*time.Second - 1, false}, {3 * time.Second, true}} {
		if d := ask(t, m, "k", l, 1, c.after); d.Allowed() != c.allowed {
			t.Errorf("row %d, at %v: %+v", i+1, c.after, d)
		}
	}
	// The first and the last instants that a request can have.
	for _, at := range []time.Time{time.UnixMicro(1), time.UnixMicro(1).Add(999), time.UnixMicro(maxExact - 1e6), time.Unix(maxExact/1_000_000-1, 999_999_999).In(time.FixedZone("", 3600))} {
		r := Request{Key: at.String(), Limit: l, Cost: 1, At: at}
		if d, err := m.Take(t.Context(), r); err != nil || !d.Allowed() || d.ResetAfter != time.Second {
			t.Errorf("at %v: %+v, %v", at, d, err)
		}
	}
}
