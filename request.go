package headgate

import (
	"errors"
	"math"
	"strconv"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Request asks a [Store] for one decision.
type Request struct {
	// Key is who or what is limited: any bytes. The empty key is a key like any other: all requests
	// without a credential share it. The command and the server refuse it.
	Key string

	// Limit is the limit that decides. Required.
	Limit Limit

	// Cost is the number of tokens that the request takes. 0 peeks: nothing is charged, and the
	// decision reports whether a cost of 1 would be granted. A negative cost returns that many
	// tokens, but not more than the key has used; see [Limiter.Refund].
	Cost int64

	// MaxWait, above 0, allows the store to book a start time ahead: the first time at which the
	// request fits after all earlier grants. The request is granted if its start time is at most
	// MaxWait ahead; [Decision.RetryAfter] is then the wait until the start time. Requests without
	// MaxWait are denied until the last booked start time. MaxWait is at most 285 years.
	MaxWait time.Duration

	// Force charges a Cost above 0 whether or not it fits. Two stores do not always charge it: a
	// full [Memory], and a fallback.Store. The decision reports whether the Cost fitted. RetryAfter
	// is the wait until the same request would fit after this charge. Force cannot be combined with
	// MaxWait. The used tokens of a key have a bound, such as 2^53 - 1 in a fixed window: see
	// docs/design/exactness.md.
	Force bool

	// Headroom is how many tokens the request leaves for others: it is granted only if at least
	// that many remain afterwards. Only Cost is charged. So classes of callers can share one state:
	// critical callers with 0, batch jobs with half of the capacity. Callers that leave headroom
	// are denied as long as other callers keep using it up. A peek reports whether a cost of 1 with
	// this headroom would be granted. If cost plus headroom is above the capacity, RetryAfter is
	// [Never]. Headroom is at least 0; with Force and for a refund, it must be 0. With MaxWait, the
	// error is [ErrNoBooking]: a start time that is booked ahead would take the headroom.
	Headroom int64

	// Start is nil, or points to a start time by the clock of the store, which sets it when it
	// grants a request that is not forced. A refund may name its grant, of the same limit, by it.
	//
	// Before the start, the refund is a cancel. It fails, with RetryAfter [Never], if a later start
	// was booked. Otherwise it returns the tokens. Under a bucket or a log, it also frees the start
	// time, unless an earlier start is ahead: see docs/design/booking.md. Later, the refund returns
	// what the limit still counts of the grant. A bucket does not know that: there, it fails if
	// tokens were granted or refunded since; see [Request.Refund]. Sent twice, it may count twice.
	Start *time.Time

	// At is the time of the request. Zero means the store's own clock: use it for live traffic, and
	// pass a time in replays and tests. Fractions of a microsecond are dropped. It must be between
	// 1970 and 2255. All times given to one store should come from one clock.
	At time.Time
}

// maxAhead bounds how far ahead times may lie.
const maxAhead = maxExact * time.Microsecond

// Validate reports the first field of r that no store would accept.
func (r *Request) Validate() error {
	if err := r.Limit.Validate(); err != nil {
		return err
	}
	if r.MaxWait < 0 || r.MaxWait > maxAhead {
		return wrong("max wait", r.MaxWait.String(), "0 to 285 years")
	}
	if r.Force && r.MaxWait > 0 {
		return wrong("max wait", r.MaxWait.String(), "0 with Force, which charges at once")
	}
	if !r.At.IsZero() && !countable(r.At) {
		return wrong("at", r.At.Format(time.RFC3339), wantTime+" for the store's clock")
	}
	if r.cancels() && !countable(*r.Start) {
		return wrong("start", r.Start.Format(time.RFC3339), wantTime+" for a refund without one")
	}
	if r.Headroom != 0 {
		return r.validateHeadroom()
	}
	return nil
}

func (r *Request) validateHeadroom() error {
	switch {
	case r.Headroom < 0:
		return invalid("headroom", r.Headroom, "0 or more tokens")
	case r.Force:
		return invalid("headroom", r.Headroom, "0 with Force, which charges what does not fit")
	case r.Cost < 0:
		return invalid("headroom", r.Headroom, "0 for a refund")
	case r.MaxWait > 0:
		return ErrNoBooking
	}
	return nil
}

const wantTime = "a time after 1970-01-01 and before 2255-06-05, or the zero time"

// countable reports whether the microseconds of t are from 1 to about maxExact.
func countable(t time.Time) bool {
	sec := t.Unix()
	return sec > 0 && sec < maxExact/1_000_000 || sec == 0 && t.Nanosecond() >= 1000
}

// Forced reports whether r is charged even if it does not fit. It is for implementers of [Store].
func (r *Request) Forced() bool { return r.Force && r.Cost > 0 }

// Needs returns how many tokens must be left before r for r to be granted: its cost (1 for a peek)
// plus its headroom. It is for implementers of [Store].
func (r *Request) Needs() int64 {
	cost := max(r.Cost, 1)
	return cost + min(r.Headroom, math.MaxInt64-cost)
}

// Refund returns a request that returns n tokens of r, which was granted and whose start has come.
// Under a bucket, it names no start, so that it never fails: see [Limiter.Refund]. It has no At.
func (r *Request) Refund(n int64) Request {
	back := Request{Key: r.Key, Limit: r.Limit, Cost: -n, Start: r.Start}
	if r.Limit.Refill() > 0 {
		back.Start = nil
	}
	return back
}

// cancels reports whether r is a refund that names its grant.
func (r *Request) cancels() bool { return r.Cost < 0 && r.Start != nil && !r.Start.IsZero() }

// order is what r asks, at now unless r says when.
func (r *Request) order(now int64) algorithm.Order {
	o := algorithm.Order{
		Now: now, Cost: r.Cost, MaxWait: r.MaxWait.Microseconds(), Force: r.Forced(),
	}
	if !r.At.IsZero() {
		o.Now = r.At.UnixMicro()
	}
	if r.Headroom > 0 {
		o.Needs = r.Needs()
	}
	if r.cancels() {
		o.Cancel = r.Start.UnixMicro()
	}
	return o
}

// granted sets the start time of a grant.
func (r *Request) granted(o algorithm.Order, v algorithm.Verdict) {
	if r.Start != nil && r.Cost > 0 && !r.Force {
		*r.Start = time.UnixMicro(o.Now + v.Retry)
	}
}

// maxTogether bounds what one TakeAll keeps others waiting for. A script of Redis fails at some
// 8,000 keys.
const maxTogether = 4000

// ValidateAll reports what is wrong with the arguments of a TakeAll, for implementers of [Store].
func ValidateAll(rs []Request, ds []Decision) error {
	if len(rs) != len(ds) {
		return invalid("decisions", int64(len(ds)), strconv.Itoa(len(rs))+", one for each request")
	}
	if len(rs) > maxTogether {
		return invalid("requests", int64(len(rs)), "at most "+strconv.Itoa(maxTogether)+" together")
	}
	for i := range rs {
		if err := rs[i].Validate(); err != nil {
			if e, ok := errors.AsType[*InvalidError](err); ok && len(rs) > 1 {
				e.Field = "request " + strconv.Itoa(i) + ": " + e.Field
			}
			return err
		}
	}
	if i := repeated(rs); i >= 0 {
		return wrong("limit", strconv.Quote(rs[i].Limit.Name())+" twice for one key",
			"one request for each key and limit, with the costs added up, "+
				"or another name for one of the limits")
	}
	return nil
}

// repeated returns the index of a request that has the state of an earlier one, or -1.
func repeated(rs []Request) int {
	if len(rs) > 16 { // comparing each with each would take longer
		return repeatedOfMany(rs)
	}
	for i := range rs {
		for j := range i {
			if rs[i].Key == rs[j].Key && rs[i].Limit.sameState(rs[j].Limit) {
				return i
			}
		}
	}
	return -1
}

func repeatedOfMany(rs []Request) int {
	type state struct{ key, id string }
	seen := make(map[state]struct{}, len(rs))
	for i := range rs {
		seen[state{rs[i].Key, rs[i].Limit.ID()}] = struct{}{}
		if len(seen) == i {
			return i
		}
	}
	return -1
}
