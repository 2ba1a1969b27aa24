package headgate

import (
	"context"
	"encoding/hex"
	"slices"
	"time"
)

// FlightID tells the flights of a key apart. It is random, made anew for each.
type FlightID [16]byte

// String is the ID in hexadecimal digits.
func (id FlightID) String() string { return hex.EncodeToString(id[:]) }

// FlightRequest asks a [ConcurrencyStore] about one flight.
type FlightRequest struct {
	// Key is who or what is limited, any bytes.
	Key string

	// ID is the flight's. The zero ID only looks: AcquireFlight decides, and begins
	// nothing.
	ID FlightID

	// N is how many flights of the key may be held at a time, from 0 to 65,535. It
	// matters to AcquireFlight alone.
	N int64

	// Lease is how long a flight is held unless it is renewed: at least a microsecond
	// and at most 8760 hours, of which a [Concurrency] asks for no less than a millisecond.
	// Whole microseconds count.
	Lease time.Duration

	// Waits says that the caller wants to be told when a flight of the key is given
	// back, if this request is denied; see WatchFlights.
	Waits bool

	// At is the time of the request, as in [Request]. Zero means the store's own clock.
	At time.Time
}

// FlightDecision is the answer to who asked for a flight. The zero FlightDecision
// allows nothing.
type FlightDecision struct {
	// N is how many may be in flight at a time.
	N int64

	// InFlight is how many are, with this one if it has begun.
	InFlight int64

	// RetryAfter is 0 if the flight may begin. Otherwise it is the wait after which so
	// many leases have ended that it may, to the microsecond, if until then nobody
	// comes, renews or gives back. For an N of 0, for which no end of a lease is
	// enough, it is the wait until the last has ended, or one lease.
	RetryAfter time.Duration
}

// Allowed says whether the flight may begin.
func (d FlightDecision) Allowed() bool { return d.RetryAfter == 0 && d.N > 0 }

// ConcurrencyStore keeps the leases of the flights of each key, and decides
// atomically. [MemoryConcurrency] decides inside one process; redisstore decides for
// every process that shares a Redis. It is safe for use by many goroutines.
//
// A lease that has ended, by the store's clock, is forgotten in the same step by
// whatever is asked next about its key, and for good: should the clock step back, it
// does not come to life again. At no time are more leases kept for a key than N, or
// than the largest N asked with while they began. Everything is done by the
// flight's ID, so each method may be called again when its answer was lost.
type ConcurrencyStore interface {
	// AcquireFlight begins a flight, unless N of the key are held already. A flight that
	// is held keeps its place, whatever N is, and its lease is prolonged.
	AcquireFlight(ctx context.Context, r FlightRequest) (FlightDecision, error)

	// RenewFlight makes the lease of a flight that is held end no sooner than a lease
	// from now. If it is not held any more, nothing is changed and held is false.
	RenewFlight(ctx context.Context, r FlightRequest) (held bool, err error)

	// ReleaseFlight gives back that flight and no other. It is carried out even if ctx has
	// ended, if that takes time behind the caller. If the flight was not held any more, held is false.
	ReleaseFlight(ctx context.Context, r FlightRequest) (held bool, err error)

	// WatchFlights sends to wake, without blocking, when a flight of key may have been
	// given back after somebody who waits was denied, until stop is called. That a
	// lease has ended it does not tell: RetryAfter says when.
	WatchFlights(key string, wake chan<- struct{}) (stop func())
}

const (
	maxFlights = 65_535
	maxLease   = 8760 * time.Hour
)

// Validate reports the first field of r that no store would accept.
func (r *FlightRequest) Validate() error {
	if r.N < 0 || r.N > maxFlights {
		return invalid("n", r.N, "from 0 to 65535, because each decision reads all leases of its key")
	}
	if err := validateLease(r.Lease); err != nil {
		return err
	}
	_, err := r.micros()
	return err
}

func (r *FlightRequest) micros() (int64, error) {
	at := Request{At: r.At}
	return at.micros()
}

func validateLease(d time.Duration) error {
	if d < time.Microsecond || d > maxLease {
		return &InvalidError{Field: "lease", Value: d.String(), Want: "at least 1µs and at most 8760h"}
	}
	return nil
}

// leases are those of one key, of which the first to end is first. Its methods and
// redisstore/concurrency.lua are twins.
type leases []flightLease

type flightLease struct {
	id  FlightID
	end int64 // microseconds since the Unix epoch; it is held before that
}

// forget drops what has ended.
func (l leases) forget(now int64) leases {
	ended := 0
	for ended < len(l) && l[ended].end <= now {
		ended++
	}
	return slices.Delete(l, 0, ended)
}

// find gives the index of a flight, or -1.
func (l leases) find(id FlightID) int {
	return slices.IndexFunc(l, func(f flightLease) bool { return f.id == id })
}

// insert puts a flight behind those that end no later.
func (l leases) insert(f flightLease) leases {
	i := len(l)
	for i > 0 && l[i-1].end > f.end {
		i--
	}
	return slices.Insert(l, i, f)
}

// prolong makes the flight at i end no sooner than a lease from now.
func (l leases) prolong(i int, now, lease int64) leases {
	f := l[i]
	f.end = max(f.end, min(now+lease, maxExact))
	return slices.Delete(l, i, i+1).insert(f)
}

// acquire begins a flight if there is room for it, and gives the wait if there is none.
func (l leases) acquire(id FlightID, n, now, lease int64) (next leases, retry int64) {
	if i := l.find(id); i >= 0 {
		return l.prolong(i, now, lease), 0
	}
	count := int64(len(l))
	switch {
	case count < n && id == (FlightID{}):
		return l, 0
	case count < n:
		return l.insert(flightLease{id, min(now+lease, maxExact)}), 0
	case count == 0:
		return l, lease
	default:
		return l, l[min(count-n, count-1)].end - now
	}
}
