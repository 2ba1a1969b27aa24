package headgate

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// Request asks a [Store] for one decision.
type Request struct {
	// Key is who or what is limited, any bytes. Required to be no particular
	// shape: the empty key is a key like any other.
	Key string

	// Limit is the rule to decide by. Required.
	Limit Limit

	// Cost is how many tokens the request takes. 0 only looks: nothing is charged
	// and the decision says whether a cost of 1 would be granted. A negative cost
	// gives that many tokens back, never beyond what still counts as taken; see
	// [Limiter.Refund] for giving back late.
	Cost int64

	// MaxWait, above 0, lets a grant be booked ahead: a request that fits within that
	// time is granted and charged at its turn, which is the first moment at which it fits
	// after all that were granted before it. The decision's RetryAfter is the wait until
	// then: the request is granted if that is at most MaxWait, see [Decision.Within].
	// Until a turn that was given has come, requests that would not wait are refused.
	// At most 285 years.
	MaxWait time.Duration

	// Ticket, if not 0, is a number of the caller's choice that no other grant of the key
	// has, by which a grant may be taken back: until its turn has come, and for as long
	// after that as Hold says. A request with a negative Cost and the Ticket of a grant
	// takes back so much of that as if it had never been granted: all that was granted after it
	// counts at the turns that it would have had without. A look (a Cost of 0) with the
	// Ticket tells when its turn comes, in RetryAfter. If there is no such grant, or it
	// counts for good, the answer to both is Never, and nothing changes: so when its time is
	// over, when the numbers of the limit have changed, or when 1024 grants of that key and
	// limit came after it (fewer of a sliding log of over 1024).
	//
	// What TakeAll grants to one key under several limits should have one Ticket, and be taken
	// back by one TakeAll of all of them. Then whatever was granted together under some of
	// these limits, with one Ticket or without, keeps one turn. A grant that waits, or has a
	// Ticket, and of which a part lies elsewhere, moves no earlier than it is.
	Ticket uint64

	// Hold is for how long after its turn a grant with a Ticket may be taken back. All that
	// is granted meanwhile is remembered one by one: 48 bytes each in memory, 40 in Redis.
	Hold time.Duration

	// Start, of a grant with a MaxWait, is set to its start time; of a refund it may name the
	// start time that it cancels.
	Start *time.Time

	// At is the time of the request. Zero means the store's own clock, which is
	// what live traffic wants; replay and tests pass the time. Whole microseconds
	// count. It must lie between 1970 and 2255. The times given to one store
	// should be of one clock, for all its keys.
	At time.Time
}

// Store keeps what each key has consumed, and decides atomically. [Memory]
// decides inside one process; redisstore decides for every process that shares
// a Redis. A Store is safe for use by many goroutines.
//
// State belongs to the key and the limit's identity ([Limit.ID]). An error means
// that the store could not say; a denial is a Decision, not an error.
type Store interface {
	// Take decides one request and charges it if it is granted.
	Take(ctx context.Context, r Request) (Decision, error)

	// TakeAll decides several requests together: all are granted and charged, or
	// none is charged. It fills ds, which must be as long as rs. If one request is
	// refused, ds holds for each of the others whether it alone would have been
	// granted, with its numbers uncharged. To take back what counts for good is refused,
	// too, and so is a look (a Cost of 0) with a Ticket whose grant does: the others depend
	// on that. Other looks refuse nobody. Two requests of the same key and limit
	// identity in one call are refused with an [InvalidError].
	TakeAll(ctx context.Context, rs []Request, ds []Decision) error

	// Reset forgets what key has consumed of l, which is then as at first sight.
	Reset(ctx context.Context, key string, l Limit) error
}

// Validate reports the first field of r that no store would accept.
func (r *Request) Validate() error {
	if err := r.Limit.Validate(); err != nil {
		return err
	}
	if r.MaxWait < 0 || r.MaxWait > maxAhead {
		return &InvalidError{Field: "max wait", Value: r.MaxWait.String(), Want: "0, or above to be granted a turn ahead, and at most 285 years"}
	}
	if r.Hold < 0 || r.Hold > maxAhead || r.Hold > 0 && r.Ticket == 0 {
		return &InvalidError{Field: "hold", Value: r.Hold.String(), Want: "0, or above for a request with a ticket, and at most 285 years"}
	}
	_, err := r.micros()
	return err
}

// maxAhead bounds how far ahead times may lie.
const maxAhead = maxExact * time.Microsecond

// order is what r asks at now.
func (r *Request) order(now int64) order {
	return order{now: now, cost: r.Cost, wait: r.MaxWait.Microseconds(), ticket: r.Ticket, hold: r.Hold.Microseconds()}
}

// takesBack says whether r takes back the grant of its ticket.
func (r *Request) takesBack() bool { return r.Cost < 0 && r.Ticket != 0 }

// micros gives At in whole microseconds since the Unix epoch, 0 for the store's own clock.
func (r *Request) micros() (int64, error) {
	if r.At.IsZero() {
		return 0, nil
	}
	sec := r.At.Unix()
	if sec < 0 || sec > maxExact/1_000_000-1 || (sec == 0 && r.At.Nanosecond() < 1000) {
		return 0, &InvalidError{Field: "at", Value: r.At.Format(time.RFC3339), Want: "a time after 1970-01-01 and before 2255-06-05, or the zero time for the store's clock"}
	}
	return sec*1_000_000 + int64(r.At.Nanosecond())/1000, nil
}

// ValidateAll reports what is wrong with the arguments of a TakeAll, for
// implementers of [Store].
func ValidateAll(rs []Request, ds []Decision) error {
	if len(rs) != len(ds) {
		return invalid("decisions", int64(len(ds)), "one for each of the "+strconv.Itoa(len(rs))+" requests")
	}
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			if e, ok := errors.AsType[*InvalidError](err); ok && len(rs) > 1 {
				e.Field = "request " + strconv.Itoa(i) + ": " + e.Field
			}
			return err
		}
		for j := range i {
			if rs[i].Key == rs[j].Key && rs[i].Limit.sameState(rs[j].Limit) {
				return &InvalidError{Field: "limit", Value: strconv.Quote(rs[i].Limit.Name()) + " twice for one key", Want: "one request for each key and limit, with the costs added up, or another name for one of the limits"}
			}
		}
	}
	return nil
}

// Granted says whether a TakeAll of rs that was answered with ds granted them, which the
// decisions do not tell one by one: for a [Store] around another one. A group has one turn, for which it waits as long
// as the least patient of those that take tokens. Giving back and looks refuse nobody, but for those with a
// Ticket that is answered with Never. There must be a decision for each request.
func Granted(rs []Request, ds []Decision) bool {
	patience := patienceOf(rs)
	for i := range rs {
		if refuses(&rs[i], ds[i], patience) {
			return false
		}
	}
	return true
}

// refuses says whether r, one of a group that waits no longer than patience, refused
// the group.
func refuses(r *Request, d Decision, patience time.Duration) bool {
	if r.Cost > 0 {
		return !d.Within(patience)
	}
	return r.Ticket != 0 && d.RetryAfter == Never
}

// patienceOf is how long rs wait together: a group has one turn, and who waits least of
// those that take tokens bounds it.
func patienceOf(rs []Request) time.Duration {
	patience := Never
	for i := range rs {
		if rs[i].Cost > 0 {
			patience = min(patience, rs[i].MaxWait)
		}
	}
	return patience
}
