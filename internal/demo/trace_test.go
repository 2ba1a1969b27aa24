package demo

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate/headgate"
)

// granted and refused are outcomes at a time.
func granted(at time.Time) outcome {
	return outcome{at, at, headgate.Decision{Limit: firstRight}}
}

func refused(at time.Time) outcome {
	return outcome{at, at, headgate.Decision{Limit: firstRight, RetryAfter: time.Second}}
}

func TestTraceCountsByTheClockOfTheStore(t *testing.T) {
	tr, begun := newTrace(), time.UnixMilli(1_000_000)
	tr.add([]outcome{granted(begun), refused(begun.Add(199 * time.Millisecond)), granted(begun.Add(200 * time.Millisecond))}, time.Hour)
	tr.see(begun.Add(time.Hour+250*time.Millisecond), firstRight, headgate.Decision{Remaining: 5})
	got := tr.sorted()
	want := []bin{
		{Start: 4_600_000, Allowed: 1, Denied: 1},
		{Start: 4_600_200, Allowed: 1, At: 4_600_250, Level: 0.5},
	}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] || tr.allowed != 2 || tr.denied != 1 {
		t.Errorf("%+v, %d allowed, %d denied; want %+v, 2, 1", got, tr.allowed, tr.denied, want)
	}
}

// The totals stay; the past is bounded, also when a clock is set back by a day.
func TestTraceForgets(t *testing.T) {
	tr, now := newTrace(), time.UnixMilli(1_000_000)
	for range 1000 {
		tr.add([]outcome{granted(now)}, 0)
		now = now.Add(70 * time.Millisecond)
	}
	if n := len(tr.bins); tr.allowed != 1000 || n < 80 || n > 82 {
		t.Errorf("%d allowed in %d bins; want 1000 in those of 16 seconds", tr.allowed, n)
	}
	tr.see(now.Add(-24*time.Hour), firstRight, headgate.Decision{Remaining: 10})
	if n := len(tr.bins); n != 1 {
		t.Errorf("%d bins after the clock was set back, want 1", n)
	}
}

// Two readers of the state get the same counts and the same past.
func TestStateIsTheSameForAll(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":13}`))
	ask(d, "POST", "/test", "", "")
	for range 2 {
		s := read[state](t, ask(d, "GET", "/api/state", "", ""))
		var allowed, denied int64
		for _, b := range s.Lanes[0].Bins {
			allowed, denied = allowed+b.Allowed, denied+b.Denied
		}
		l, r := s.Lanes[0], s.Lanes[1]
		if l.Allowed != 10 || l.Denied != 4 || r.Allowed != 10 || r.Denied != 3 || allowed != 10 || denied != 4 || l.Most != 10 {
			t.Errorf("left %d and %d (%d and %d in bins), most %d, right %d and %d",
				l.Allowed, l.Denied, allowed, denied, l.Most, r.Allowed, r.Denied)
		}
	}
	// A change of the limit keeps the counts, because the other lane keeps its own.
	ask(d, "POST", "/api/limits", jsonType, `{"left":"1/s burst 20"}`)
	if l := read[state](t, ask(d, "GET", "/api/state", "", "")).Lanes[0]; l.Allowed != 10 || l.Most != 0 {
		t.Errorf("after a change %d allowed, most %d", l.Allowed, l.Most)
	}
	s := read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"left":"x=2/s burst 5","right":"7/m sliding-log","reset":true}`))
	for i, text := range []string{"2/s burst 5", "7/m sliding-log"} {
		if l := s.Lanes[i]; l.Limit != text || l.Allowed+l.Denied+l.Most != 0 || l.Remaining != l.Capacity || len(l.Bins) != 1 {
			t.Errorf("after a new beginning %+v", l)
		}
	}
}

func TestNamesOfFields(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	s := read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":11}`)).State
	var names []string
	for _, f := range s.Lanes[0].Fields {
		names = append(names, f.Name)
	}
	const want = "RateLimit RateLimit-Policy Retry-After X-RateLimit-Limit X-RateLimit-Remaining X-RateLimit-Reset"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// While requests are decided, limits change and lanes are reset, the counts stay those of one
// traffic: no lane has more than was sent, and a reset is the end of what was before it.
func TestResetsWhileRequestsAreDecided(t *testing.T) {
	d := newDemo(t, headgate.NewMemory())
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 30 {
				switch i {
				case 0:
					ask(d, "POST", "/api/limits", jsonType, `{"left":"`+strconv.Itoa(n+1)+`/s","right":"5/s","reset":true}`)
				case 1:
					ask(d, "POST", "/config", form, "capacity="+strconv.Itoa(n+1))
				default:
					read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":20}`))
				}
			}
		})
	}
	all.Wait()
	s := read[state](t, ask(d, "GET", "/api/state", "", ""))
	for _, l := range s.Lanes {
		if n := l.Allowed + l.Denied; n > 2*30*20 {
			t.Errorf("%s: %d of %d requests", l.Name, n, 2*30*20)
		}
	}
	s = read[state](t, ask(d, "POST", "/api/limits", jsonType, `{"left":"3/h","right":"5/h sliding-log","reset":true}`))
	if l := s.Lanes[0]; l.Limit != "3/h" || l.Allowed+l.Denied != 0 || l.Remaining != 3 {
		t.Errorf("after the last reset %+v", l)
	}
}

// POST /config makes a stepped bucket of whatever the left lane is, and keeps what is consumed.
func TestConfigOfAnotherAlgorithm(t *testing.T) {
	for _, c := range []struct {
		left      string
		requests  string
		limit     string
		remaining int64
	}{
		{"1/m burst 10", "4", "1/m burst 5 stepped", 3},
		{"10/h fixed-window", "1", "10/h burst 5 stepped", 4},
		{"7/h sliding-log", "7", "7/h burst 5 stepped", 0},
		{"9/h sliding-window", "0", "9/h burst 5 stepped", 5},
	} {
		d := newDemo(t, headgate.NewMemory())
		ask(d, "POST", "/api/limits", jsonType, `{"left":"`+c.left+`","right":"1/s","reset":true}`)
		if c.requests != "0" {
			read[batchAnswer](t, ask(d, "POST", "/api/requests", jsonType, `{"requests":`+c.requests+`}`))
		}
		if w := ask(d, "POST", "/config", form, "capacity=5"); w.Code != 200 {
			t.Fatal(w.Body)
		}
		l := read[state](t, ask(d, "GET", "/api/state", "", "")).Lanes[0]
		if l.Limit != c.limit || l.Remaining != c.remaining {
			t.Errorf("%s became %s with %d remaining; want %s with %d", c.left, l.Limit, l.Remaining, c.limit, c.remaining)
		}
	}
}

// A token bucket of 10 that is full in 2.5 seconds, at one token a second, holds 7.5.
func TestLevel(t *testing.T) {
	for _, c := range []struct {
		limit     headgate.Limit
		remaining int64
		reset     time.Duration
		want      float64
	}{
		{firstLeft, 7, 2500 * time.Millisecond, 0.75},
		{firstLeft, 10, 0, 1},
		{firstLeft, 0, 25 * time.Second, 0},
		{firstRight, 7, 2500 * time.Millisecond, 0.7},
	} {
		got := level(c.limit, headgate.Decision{Remaining: c.remaining, ResetAfter: c.reset})
		if math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s with %d remaining, full in %s: %g, want %g", c.limit, c.remaining, c.reset, got, c.want)
		}
	}
}

func TestRescaled(t *testing.T) {
	for _, c := range [][4]int64{{1, 10, 3, 1}, {10, 10, 3, 3}, {0, 10, 3, 0}, {1 << 50, 1 << 51, 1<<52 - 1, 1 << 51}} {
		if got := rescaled(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%d of %d is %d of %d, want %d", c[0], c[1], got, c[2], c[3])
		}
	}
}
