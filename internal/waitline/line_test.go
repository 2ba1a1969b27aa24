package waitline

import (
	"testing"
	"testing/synctest"
	"time"
)

// bookings is a store that cancels what the test says.
type bookings struct{ cancel func(Start) bool }

func (b bookings) Cancel(s Start) (bool, error) { return b.cancel(s), nil }
func (b bookings) Run(f func())                 { f() }

// in is the start time that comes after so many seconds.
func in(seconds float64) Start {
	due := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	return Start{Due: due, Times: []time.Time{due}}
}

// passesAfter waits for c.
func passesAfter(t *testing.T, name string, c *Caller[string], start time.Time, want time.Duration) {
	t.Helper()
	if err := c.Wait(t.Context()); err != nil || time.Since(start) != want {
		t.Errorf("%s passes after %s, %v; want %s", name, time.Since(start), err, want)
	}
}

// Answers come out of order, and the later caller has little time.
func TestLineOfCallersWithDeadlines(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second float64       // the starts that the store gives them
		firstPasses   time.Duration // and when they pass
		secondPasses  time.Duration
	}{
		{"the later one has the only start in its time", 2, 1, 2 * time.Second, time.Second},
		{"no start is in its time", 1, 2, time.Second, 2 * time.Second},
		{"both starts are in its time", 1.25, 1, time.Second, 1250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lines Lines[string]
				store := bookings{func(Start) bool { return true }}
				start := time.Now()
				first, _ := lines.Join("k", start.Add(time.Hour), store)
				second, _ := lines.Join("k", start.Add(1500*time.Millisecond), store)
				first.Answer(in(c.first))
				second.Answer(in(c.second))
				go passesAfter(t, "the later one", second, start, c.secondPasses)
				passesAfter(t, "the first", first, start, c.firstPasses)
				time.Sleep(time.Minute)
				if n := lines.Len(); n != 0 {
					t.Errorf("%d lines are left", n)
				}
			})
		})
	}
}

// A start time that the store does not take back is kept for the callers that ask meanwhile, also if
// they are answered meanwhile.
func TestLineKeepsAStartTimeThatCannotBeCancelled(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var lines Lines[string]
			start := time.Now()
			var late *Caller[string]
			store := bookings{}
			cancels := 0
			store.cancel = func(Start) bool {
				if cancels++; cancels > 1 {
					return true
				}
				var booked bool
				if late, booked = lines.Join("k", start.Add(time.Hour), store); booked {
					t.Error("the start time that is being cancelled was given away")
				}
				if meanwhile {
					late.Answer(in(3))
				}
				return false
			}
			first, _ := lines.Join("k", start.Add(time.Hour), store)
			second, _ := lines.Join("k", start.Add(time.Hour), store)
			first.Answer(in(1))
			second.Answer(in(2))
			second.Leave()
			if !meanwhile {
				late.Answer(in(3))
			}
			passesAfter(t, "the first", first, start, time.Second)
			passesAfter(t, "the late one", late, start, 2*time.Second)
			if cancels != 2 || lines.Len() != 0 {
				t.Errorf("%d cancels, %d lines are left", cancels, lines.Len())
			}
		})
	}
}

// A panic of the store in a cancel goes on, and leaves the line in order.
func TestLineAfterAPanicOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines Lines[string]
		start := time.Now()
		store := bookings{func(Start) bool { panic("store") }}
		first, _ := lines.Join("k", start.Add(time.Hour), store)
		first.Answer(in(1))
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was lost")
				}
			}()
			_ = lines.Return("k", in(2), store)()
		}()
		next, booked := lines.Join("k", start.Add(time.Hour), store)
		if booked {
			t.Error("a start time is used that may have been cancelled")
		}
		next.Answer(in(3))
		passesAfter(t, "the first", first, start, time.Second)
		passesAfter(t, "the next", next, start, 3*time.Second)
		if n := lines.Len(); n != 0 {
			t.Errorf("%d lines are left", n)
		}
	})
}

// After a panic in a cancel, the store is not asked to cancel the other spare start times.
func TestLineCancelsNoMoreAfterAPanicOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines Lines[string]
		start, cancels := time.Now(), 0
		store := bookings{func(Start) bool { cancels++; panic("store") }}
		first, _ := lines.Join("k", start.Add(time.Hour), store)
		first.Answer(in(1))
		asks, _ := lines.Join("k", start.Add(time.Hour), store)
		for _, seconds := range []float64{2, 3} { // which are kept while one asks
			if err := lines.Return("k", in(seconds), store)(); err != nil {
				t.Error(err)
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic was lost")
				}
			}()
			asks.Answer(Start{})
		}()
		if cancels != 1 {
			t.Errorf("the store was asked to cancel %d times; want once", cancels)
		}
		passesAfter(t, "the first", first, start, time.Second)
		if n := lines.Len(); n != 0 {
			t.Errorf("%d lines are left", n)
		}
	})
}

// A caller does not take a spare start time that is after its deadline.
func TestLineGivesNoSpareStartAfterTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines Lines[string]
		start := time.Now()
		store := bookings{func(Start) bool { return true }}
		asks, _ := lines.Join("k", start.Add(time.Hour), store)
		leaves, _ := lines.Join("k", start.Add(time.Hour), store)
		leaves.Answer(in(2))
		leaves.Leave() // its start time may be for the one that asks
		if _, booked := lines.Join("k", start.Add(time.Second), store); booked {
			t.Error("a caller that has a second takes a start time in two")
		}
		patient, booked := lines.Join("k", start.Add(2*time.Second), store)
		if !booked {
			t.Error("a caller that has two seconds does not take the spare start time")
		}
		asks.Answer(Start{})
		passesAfter(t, "the patient one", patient, start, 2*time.Second)
	})
}
