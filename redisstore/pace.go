package redisstore

import "time"

const (
	// tripCost is about what a trip costs both sides, whatever it carries.
	tripCost = 50 * time.Microsecond

	// From this many trips on, they are spread over the time of one.
	manyTrips = 8

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
	recent  time.Duration // the shortest of the latest trips: it grows by a sixteenth with each
}

// allows reports whether one more trip may leave, when some are under way, the last of them for a
// time, and some calls are ready.
func (p *pace) allows(underWay, ready int, last time.Duration) bool {
	if underWay == 1 && ready >= manyCalls {
		return true
	}
	room := float64(p.network)/float64(tripCost) - 1
	room *= max(2-float64(p.recent)/float64(p.network), 0)
	return float64(underWay) < room && (underWay < manyTrips || last >= p.recent/manyTrips)
}

// ended counts a trip.
func (p *pace) ended(now time.Time, took time.Duration) {
	if p.recent == 0 {
		*p = pace{network: took, next: took, since: now, recent: took}
	}
	p.recent = min(took, p.recent+p.recent/16)
	p.network, p.next = min(p.network, took), min(p.next, took)
	if now.Sub(p.since) > spell {
		p.network, p.next, p.since = p.next, took, now
	}
}
