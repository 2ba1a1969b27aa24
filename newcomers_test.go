package headgate

import (
	"fmt"
	"testing"
	"time"
)

// A flood that is over leaves nobody refused who had no part in it, although one
// newcomer spent what newcomers shared of a day.
func TestStrangersAfterAFlood(t *testing.T) {
	m := NewMemory(1000)
	second, day := FixedWindow(5, time.Second), FixedWindow(100, 24*time.Hour)
	for i := range 3000 {
		ask(t, m, fmt.Sprint("flood", i), second, 5, 0)
	}
	for range 100 {
		ask(t, m, "spender", day, 1, 0)
	}
	for i := range 500 {
		if d := ask(t, m, fmt.Sprint("stranger", i), day, 1, time.Minute); !d.Allowed() {
			t.Fatalf("stranger %d is refused its first request of a day: %+v", i, d)
		}
	}
	if d := ask(t, m, "spender", day, 1, time.Minute); d.Allowed() {
		t.Errorf("the spender, at a place of its own, is granted more: %+v", d)
	}
}

// A newcomer begins its own log with what newcomers have taken.
func TestNewcomerBringsItsLog(t *testing.T) {
	m := NewMemory(3)
	for i := range 3 {
		ask(t, m, fmt.Sprint("known", i), FixedWindow(1, time.Second), 1, 0)
	}
	granted := 0
	for i := range 100 {
		if ask(t, m, "newcomer", SlidingLog(5, time.Hour), 1, time.Duration(i)*100*time.Millisecond).Allowed() {
			granted++
		}
	}
	if granted != 5 {
		t.Errorf("granted %d of 5 an hour", granted)
	}
}

// Plans of one name share what newcomers share; taking turns wins nothing.
func TestPlansOfNewcomers(t *testing.T) {
	m := NewMemory(100)
	pro, free := PerHour(1000).Named("plan"), PerHour(10).Named("plan")
	for i := range 400 {
		ask(t, m, fmt.Sprint("flood", i), free, 5, 0)
	}
	var granted int64
	for i := range 100 {
		if ask(t, m, "greedy", pro, 900, 0).Allowed() {
			granted += 900
		}
		ask(t, m, fmt.Sprint("stranger", i), free, 1, 0)
	}
	if granted > 1000 {
		t.Errorf("granted %d of 1000 an hour at one instant", granted)
	}
}

// A group larger than a small or full store finds places: those that newcomers share
// count once.
func TestTakeAllBeyondTheStore(t *testing.T) {
	l := PerHour(1000)
	for _, keys := range []int{1, 10, 100, 1000} {
		for _, full := range []bool{false, true} {
			m := NewMemory(keys)
			for i := 0; full && i < 2*keys+100; i++ {
				ask(t, m, fmt.Sprint("flood", i), l, 1, 0)
			}
			for _, n := range []int{2, 5, 50, 300} {
				rs, ds := make([]Request, n), make([]Decision, n)
				for i := range rs {
					rs[i] = Request{Key: fmt.Sprint("new", n, " ", i), Limit: l, Cost: 1, At: midnight}
				}
				if err := m.TakeAll(t.Context(), rs, ds); err != nil {
					t.Errorf("NewMemory(%d), full %v, %d together: %v", keys, full, n, err)
				}
			}
		}
	}
}

// Two newcomers that fit one by one and not together: the wait of the second is one
// after which it may fit, not for ever.
func TestTakeAllOfTwoNewcomers(t *testing.T) {
	m := NewMemory(10)
	l := PerHour(10)
	for i := range 100 {
		ask(t, m, fmt.Sprint("flood", i), l, 1, 0)
	}
	m.shards[0].reset(newcomers(l.rule))
	rs := []Request{{Key: "a", Limit: l, Cost: 6, At: midnight}, {Key: "b", Limit: l, Cost: 6, At: midnight}}
	ds := make([]Decision, 2)
	if err := m.TakeAll(t.Context(), rs, ds); err != nil {
		t.Fatal(err)
	}
	if !ds[0].Allowed() || ds[1].Allowed() || ds[1].RetryAfter == Never || ds[1].RetryAfter <= 0 {
		t.Errorf("6 and 6 of 10: %+v", ds)
	}
}

// A place that was vacated still leads to those behind it.
func TestVacatedPlacesLeadOn(t *testing.T) {
	m := NewMemory(1000)
	day, second := FixedWindow(1, 24*time.Hour), FixedWindow(1, time.Second)
	for i := range 500 {
		ask(t, m, fmt.Sprint("short", i), second, 1, 0)
		ask(t, m, fmt.Sprint("long", i), day, 1, 0)
	}
	for i := range 30 {
		ask(t, m, fmt.Sprint("look", i), day, 0, time.Minute)
	}
	for i := range 500 {
		if d := ask(t, m, fmt.Sprint("long", i), day, 0, time.Minute); d.Allowed() {
			t.Fatalf("long%d is forgotten", i)
		}
	}
}
