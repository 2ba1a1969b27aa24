package main

import (
	"testing"
	"time"
)

func TestMostInAnyWindow(t *testing.T) {
	start := time.Now()
	at := func(millis ...int) (seen []time.Time) {
		for _, m := range millis {
			seen = append(seen, start.Add(time.Duration(m)*time.Millisecond))
		}
		return seen
	}
	for _, c := range []struct {
		seen []time.Time
		want int
	}{
		{nil, 0},
		{at(0), 1},
		{at(0, 10, 20), 1}, // a window does not hold its end
		{at(0, 9, 10, 19, 20), 2},
		{at(0, 5, 14, 14, 14), 4},
	} {
		if got := mostInAnyWindow(c.seen, 10*time.Millisecond); got != c.want {
			t.Errorf("%v: %d; want %d", c.seen, got, c.want)
		}
	}
}

func TestPartOf(t *testing.T) {
	start := time.Now()
	var seen []time.Time
	for i := range 41 { // 10 at each second, and two seconds between the last turns
		at := time.Duration(i/10) * time.Second
		if i >= 40 {
			at += time.Second
		}
		seen = append(seen, start.Add(at))
	}
	if got := partOf(seen, 10, time.Second); got != 0.75 {
		t.Errorf("part is %v, want 0.75", got)
	}
	if got := partOf(seen[:20], 10, time.Second); got != 0 {
		t.Errorf("part of a short run is %v, want 0", got)
	}
}
