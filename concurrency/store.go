package concurrency

import (
	"context"
	"encoding/hex"
	"strconv"
	"time"
)

// PermitID identifies one permit of a key. It is random.
type PermitID [16]byte

// String returns the ID in hexadecimal digits.
func (id PermitID) String() string { return hex.EncodeToString(id[:]) }

// Request names one permit in a call of a [Store].
type Request struct {
	// Key is what is limited, any bytes.
	Key string

	// ID is the permit. With the zero ID, AcquirePermit decides and acquires nothing.
	ID PermitID

	// Limit is how many permits of the key may be in use, from 0 to 65,535. Only
	// AcquirePermit reads it.
	Limit int64

	// TTL is the time after which the permit expires unless it is renewed: at least 1µs and
	// at most 8760h. Fractions of a microsecond are dropped.
	TTL time.Duration

	// After is how long a permit that is released stays in use, from 0 to 8760h. Only
	// ReleasePermit reads it. Fractions of a microsecond are dropped.
	After time.Duration

	// Notify: if this request is denied, the next release of a permit of the key wakes its
	// watchers. See WatchPermits.
	Notify bool

	// At is the time of the request, as in [headgate.Request]. Zero means the store's clock.
	At time.Time
}

// Decision is the answer to a request for a permit. The zero Decision denies.
type Decision struct {
	// Limit is how many permits may be in use at a time.
	Limit int64

	// InUse is how many permits are in use, including one that was just acquired.
	InUse int64

	// RetryAfter is 0 if the request is allowed. Otherwise it is the time until enough permits have
	// expired, if none is acquired, renewed or released before. With Limit 0 it is the time until
	// all have expired, or one TTL if none is in use.
	RetryAfter time.Duration
}

// Allowed reports whether the permit may be used.
func (d Decision) Allowed() bool { return d.RetryAfter == 0 && d.Limit > 0 }

// Store keeps the permits in use of each key. Every method is one atomic step. [Memory] is the
// Store of one process; redisstore.Store serves all processes that share a Redis. A Store is safe
// for use by many goroutines.
//
// Every call first removes the permits of its key that have expired by the store's clock. A
// removed permit never comes back, even if the clock steps back. Requests name a permit by its
// ID, so a call whose answer was lost can be repeated.
type Store interface {
	// AcquirePermit acquires a permit, unless Limit permits of the key are in use. A permit
	// that is in use already is renewed instead, whatever the limit.
	AcquirePermit(ctx context.Context, r Request) (Decision, error)

	// RenewPermit makes a permit in use expire no sooner than its TTL from now. If it is not
	// in use any more, held is false and nothing changes.
	RenewPermit(ctx context.Context, r Request) (held bool, err error)

	// ReleasePermit releases the permit of r and no other. If it was not in use any more, held is
	// false. If ctx has ended, the permit is released nevertheless. With After, the permit stays in
	// use for that time instead of its TTL. It loses its ID, so no later call changes it.
	ReleasePermit(ctx context.Context, r Request) (held bool, err error)

	// After a request with Notify was denied, WatchPermits sends to the channel wake as soon as a
	// permit of key may have been released. The send does not block. WatchPermits ends when stop is
	// called. It does not report expiry: the RetryAfter of the denial is the time until enough
	// permits expire.
	WatchPermits(key string, wake chan<- struct{}) (stop func())
}

const (
	maxLimit = 65_535
	maxTTL   = 8760 * time.Hour
	maxTime  = 1<<53 - 1 // microseconds since the Unix epoch that a double holds exactly
)

// Validate reports the first field of r that no store accepts.
func (r *Request) Validate() error {
	switch {
	case r.Limit < 0 || r.Limit > maxLimit:
		return invalid("limit", strconv.FormatInt(r.Limit, 10),
			"from 0 to 65535, because each call reads all permits of its key")
	case r.TTL < time.Microsecond || r.TTL > maxTTL:
		return invalid("ttl", r.TTL.String(), "at least 1µs and at most 8760h")
	case r.After < 0 || r.After > maxTTL:
		return invalid("after", r.After.String(), "from 0 to 8760h")
	case !r.At.IsZero() && (r.At.UnixMicro() <= 0 || r.At.Unix() >= maxTime/1_000_000):
		return invalid("at", r.At.Format(time.RFC3339),
			"a time after 1970-01-01 and before 2255-06-05, or zero for the store's clock")
	}
	return nil
}
