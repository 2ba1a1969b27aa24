package demo

import (
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// Times are in milliseconds. A decision takes no time unless the row says so.
func TestLargestWindow(t *testing.T) {
	for name, c := range map[string]struct {
		grants [][2]int // from, to
		want   int64
	}{
		"none":                            {nil, 0},
		"two bursts in one window":        {[][2]int{{0, 0}, {0, 0}, {999, 999}, {999, 999}}, 4},
		"a window does not hold its end":  {[][2]int{{0, 0}, {1000, 1000}}, 1},
		"a window begins anywhere":        {[][2]int{{0, 0}, {600, 600}, {1100, 1100}, {1500, 1500}, {2500, 2500}}, 3},
		"what may be outside is not in":   {[][2]int{{0, 0}, {900, 1100}}, 1},
		"though it counts in another":     {[][2]int{{0, 0}, {900, 1100}, {1200, 1200}}, 2},
		"slower than a window is unknown": {[][2]int{{0, 2000}}, 0},
		"out of order":                    {[][2]int{{500, 500}, {0, 0}, {1200, 1200}}, 2},
	} {
		begun := time.Now()
		limit := headgate.SlidingLog(100, time.Second)
		var outcomes []outcome
		for _, g := range c.grants {
			d := headgate.Decision{Limit: limit}
			from, to := begun.Add(time.Duration(g[0])*time.Millisecond), begun.Add(time.Duration(g[1])*time.Millisecond)
			outcomes = append(outcomes, outcome{from, to, d}, outcome{from, to, headgate.Decision{Limit: limit, RetryAfter: 1}})
		}
		together, apart := newLargestWindow(limit), newLargestWindow(limit)
		together.add(outcomes)
		if together.found != c.want {
			t.Errorf("%s: %d, want %d", name, together.found, c.want)
		}
		for _, o := range outcomes {
			apart.add([]outcome{o})
		}
		if apart.found > c.want {
			t.Errorf("%s, one by one: %d is more than %d", name, apart.found, c.want)
		}
	}
}

// Answers of a slow store come in any order, and join no run then.
func TestLargestWindowIsBounded(t *testing.T) {
	limit := headgate.PerSecond(10)
	m, begun := newLargestWindow(limit), time.Now()
	for i := range 2 * maxRuns {
		at := begun.Add(time.Duration(i%2) * 500 * time.Millisecond)
		m.add([]outcome{{at, at, headgate.Decision{Limit: limit}}})
	}
	if len(m.runs) != maxRuns {
		t.Errorf("%d runs are kept, want %d", len(m.runs), maxRuns)
	}
}

// What no later window can reach is forgotten, and nothing else.
func TestLargestWindowForgets(t *testing.T) {
	limit := headgate.PerSecond(10)
	m, begun := newLargestWindow(limit), time.Now()
	for i := range 1000 {
		at := begun.Add(time.Duration(i) * 10 * time.Millisecond)
		m.add([]outcome{{at, at, headgate.Decision{Limit: limit}}})
	}
	if n := len(m.runs); n < 100 || n > 102 {
		t.Errorf("%d runs are kept, want those of one second", n)
	}
	if m.found != 100 {
		t.Errorf("%d in any second, want 100", m.found)
	}
}
