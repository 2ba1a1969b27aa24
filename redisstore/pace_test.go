package redisstore

import (
	"testing"
	"time"
)

// most is how many trips may be under way at once, a while after the last one left.
func (p *pace) most(last time.Duration) int {
	n := 1
	for n < 100 && p.allows(n, 1, last) {
		n++
	}
	return n
}

// trips lets so many trips of a duration end, each when the one before has.
func (p *pace) trips(now time.Time, n int, took time.Duration) time.Time {
	for range n {
		now = now.Add(took)
		p.ended(now, took, true)
	}
	return now
}

// The number of trips follows the network, and not the server.
func TestPace(t *testing.T) {
	for _, test := range []struct {
		network, recent time.Duration
		at, later       int // trips when the last one left just now, and a while ago
	}{
		{40 * time.Microsecond, 40 * time.Microsecond, 1, 1}, // loopback
		{40 * time.Microsecond, time.Millisecond, 1, 1},      // and a busy server
		{100 * time.Microsecond, 100 * time.Microsecond, 1, 1},
		{200 * time.Microsecond, 200 * time.Microsecond, 3, 3},
		{360 * time.Microsecond, 360 * time.Microsecond, 6, 6},
		{time.Millisecond, time.Millisecond, 8, 16},
		{time.Millisecond, 100 * time.Microsecond, 8, 16},
		{time.Millisecond, 1500 * time.Microsecond, 8, 8},
		{time.Millisecond, 1800 * time.Microsecond, 3, 3},
		{time.Millisecond, 2 * time.Millisecond, 1, 1},
		{time.Millisecond, time.Second, 1, 1},
		{time.Hour, time.Hour, 8, 16},
	} {
		p := pace{recent: test.recent, network: test.network}
		if at, later := p.most(0), p.most(time.Hour); at != test.at || later != test.later {
			t.Errorf("trips of %s where the network needs %s: %d at once, later %d; want %d, %d",
				test.recent, test.network, at, later, test.at, test.later)
		}
		if !p.allows(1, manyCalls, 0) || p.allows(2, manyCalls, 0) != (test.at > 2) {
			t.Errorf("trips of %s where the network needs %s: want a second trip for many calls, "+
				"and no third",
				test.recent, test.network)
		}
	}
	if n := new(pace).most(time.Hour); n != 1 {
		t.Errorf("%d trips before one has ended; want 1", n)
	}
}

// When the network becomes slower or faster, the number of trips follows: within two spells, and
// within some tens of trips.
func TestPaceFollowsTheNetwork(t *testing.T) {
	near, far := 350*time.Microsecond, 5*time.Millisecond
	var p pace
	now := p.trips(time.Unix(1, 0), 10, near)
	if n := p.most(0); n != 6 {
		t.Errorf("%d trips; want 6", n)
	}
	now = p.trips(now, 20, far)
	if n := p.most(0); n != 1 {
		t.Errorf("%d trips when all take longer; want 1", n)
	}
	now = p.trips(now, int(2*spell/far), far)
	if n := p.most(0); n != manyTrips {
		t.Errorf("%d trips after two spells; want %d", n, manyTrips)
	}
	p.trips(now, 60, near)
	if n := p.most(0); n != 6 {
		t.Errorf("%d trips when the network is fast again; want 6", n)
	}
}

// A busy server gets one trip at a time, and as many as before once a trip is short. A trip that
// takes long among others changes nothing.
func TestPaceOfABusyServer(t *testing.T) {
	took := time.Millisecond
	var p pace
	now := p.trips(time.Unix(1, 0), 10, took)
	for range 5 {
		now = p.trips(p.trips(now, 1, 20*took), 1, took)
	}
	if n := p.most(0); n != manyTrips {
		t.Errorf("%d trips when every other takes long; want %d", n, manyTrips)
	}
	now = p.trips(now, 24, 20*took)
	if n := p.most(0); n != 1 {
		t.Errorf("%d trips when all take long; want 1", n)
	}
	now = p.trips(now, 1, took)
	if n := p.most(0); n != manyTrips {
		t.Errorf("%d trips after a short one; want %d", n, manyTrips)
	}
	for range 5000 { // refused at once, or timed out
		p.ended(now, time.Microsecond, false)
	}
	if n := p.most(0); n != 1 {
		t.Errorf("%d trips when none is answered; want 1", n)
	}
	p.trips(now, 1, took)
	if n := p.most(0); n != manyTrips {
		t.Errorf("%d trips after an answer; want %d: failures say nothing about the network", n,
			manyTrips)
	}
}
