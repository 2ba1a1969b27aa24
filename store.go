package headgate

import (
	"context"
	"reflect"
)

// Store keeps what each key has used, and decides atomically. [Memory] decides inside one process;
// redisstore decides for every process that shares a Redis. The TakeAll of redisstore is not atomic
// for keys on several servers. A Store is safe for use by many goroutines.
//
// State belongs to the key and the limit's [Limit.ID]. An error means that the store is
// unavailable or the input is wrong; a denial is a Decision, not an error.
//
// A store that does not book ahead returns [ErrNoBooking] for a valid request with MaxWait, and
// decides nothing. It need not set Start: refunds then name no grant.
type Store interface {
	// Take decides one request and charges it if it is granted, or forced.
	Take(ctx context.Context, r Request) (Decision, error)

	// TakeAll decides several requests together: all are granted and charged, or none is charged.
	// It fills ds, which must be as long as rs. All grants have one start time: the latest that any
	// of them needs. A cancel that fails denies the other requests; a peek, a refund and a forced
	// request never do. A forced request ([Request.Force]) is charged even if others are denied. If
	// a request is denied, ds reports for each other one whether it alone would have been granted.
	// TakeAll returns an [InvalidError] for two requests of one key and [Limit.ID], and for more
	// than 4,000 requests.
	TakeAll(ctx context.Context, rs []Request, ds []Decision) error

	// Reset puts key back in its initial state under l.
	Reset(ctx context.Context, key string, l Limit) error
}

// Granted reports whether a TakeAll granted all requests of rs that are not forced. It is for
// implementers of a [Store] around another one. ds must be as long as rs.
func Granted(rs []Request, ds []Decision) bool {
	patience := Never
	for i := range rs {
		if rs[i].Cost > 0 && !rs[i].Force {
			patience = min(patience, rs[i].MaxWait)
		}
	}
	for i := range rs {
		denied := rs[i].Cost > 0 && !rs[i].Force && !ds[i].Within(patience)
		if denied || rs[i].Cost < 0 && ds[i].RetryAfter == Never {
			return false
		}
	}
	return true
}

// ValidateStore returns an [InvalidError] for a store that is nil or that no constructor made. It
// is for implementers of a [Store] around another one.
func ValidateStore(s Store) error {
	v := reflect.ValueOf(s)
	m, _ := s.(*Memory)
	if !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() || m != nil && m.shards == nil {
		return wrong("store", "nil or a zero value", "a Store, such as NewMemory()")
	}
	return nil
}
