package redisstore

import "time"

const (
	// tripCost is about what a trip costs both sides, whatever it carries.
	tripCost = 50 * time.Microsecond

	maxTrips  = 16
	manyTrips = 8 // from here on, they are spread over the time of one

	// This many calls are worth a second trip: one travels while the server decides the other.
	manyCalls = 48

	spell = time.Second
)

// pace decides how many trips to a server are under way at once. With more of them, callers wait
// less for the trips of others. So while trips take no longer than the network needs, there are as
// many as the round trip has room for their costs. If all take longer, the server is busy: there
// are fewer, down to one where they take twice as long, and the batches grow.
type pace struct {
	network time.Duration // the shortest trip of this spell and the last one
	next    time.Duration // the shortest trip of this spell
	since   time.Time     // the start of this spell
	recent  time.Duration // the shortest of the latest trips: it grows by a 32nd with each
}

// allows reports whether one more trip may leave, when some are under way, the last of them for a
// time, and some calls are ready.
func (p *pace) allows(underWay, ready int, last time.Duration) bool {
	if underWay == 1 && ready >= manyCalls {
		return true
	}
	room := min(int64(p.network/tripCost)-1, maxTrips) // rounded down, so that one leaves next door
	quick := max(2*p.network-max(p.recent, p.network), 0)
	room = room * int64(quick) / max(int64(p.network), 1)
	return int64(underWay) < room && (underWay < manyTrips || last >= p.recent/manyTrips)
}

// ended counts a trip. One that was not answered says nothing about the network.
func (p *pace) ended(now time.Time, took time.Duration, answered bool) {
	if !answered {
		p.recent = min(p.recent+p.recent/32, 2*p.network) // more would change nothing
		return
	}
	if p.recent == 0 {
		*p = pace{network: took, next: took, since: now, recent: took}
	}
	p.recent = min(took, p.recent+p.recent/32)
	p.network, p.next = min(p.network, took), min(p.next, took)
	if now.Sub(p.since) > spell {
		p.network, p.next, p.since = p.next, took, now
	}
}
