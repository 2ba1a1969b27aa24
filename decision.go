package headgate

import (
	"math"
	"time"
)

// Never is the RetryAfter of a request that no wait can make fit, because its
// cost is larger than the limit can ever hold.
const Never time.Duration = math.MaxInt64

// Decision is the answer to a [Request]. A grant, a denial and a look report
// the same fields with the same meaning, as they stand after the request. The zero
// Decision allows nothing.
//
// Decision has four words and should stay so: a larger struct is not returned in
// registers, and at each call costs more than deciding does.
type Decision struct {
	// Limit is the limit that decided: of several limits, the one that refused
	// for the longest, or else the one with the least remaining.
	Limit Limit

	// Remaining is the largest cost that would be granted now.
	Remaining int64

	// RetryAfter is 0 if the request may go ahead, and otherwise the shortest wait
	// after which the same request would be granted if nobody else came, to the
	// microsecond; or Never.
	RetryAfter time.Duration

	// ResetAfter is the wait until the limit is as at first sight for this key,
	// if nobody comes: a full bucket, an empty window, an empty log.
	ResetAfter time.Duration
}

// Allowed says whether the request may go ahead. For a look (cost 0) it says
// whether a cost of 1 would be granted now. Giving back is always allowed.
func (d Decision) Allowed() bool { return d.RetryAfter == 0 && d.Limit.rule != nil }

// Within says whether the request may go ahead after a wait of at most that long, which
// is whether it was granted, if it was asked with that MaxWait. Its turn comes in
// RetryAfter.
func (d Decision) Within(wait time.Duration) bool { return d.RetryAfter <= wait && d.Limit.rule != nil }

// Degraded says that not the store decided but what stands in for it while it cannot say, such
// as fallback.Store. Limit is then the part of the limit that it may grant by itself
// ([Limit.Share]), with its own numbers under the same name, and Remaining and the waits are of
// that.
func (d Decision) Degraded() bool { return d.Limit.rule != nil && d.Limit.rule.shareOf != "" }

// verdict is a decision in the arithmetic of the algorithms: microseconds.
type verdict struct {
	remaining int64
	retry     int64 // 0 if granted, or never
	reset     int64
}

const never = -1

func (v verdict) granted() bool { return v.retry == 0 }

func (v verdict) decision(l Limit) Decision {
	retry := Never
	if v.retry != never {
		retry = duration(v.retry)
	}
	return Decision{Limit: l, Remaining: v.remaining, RetryAfter: retry, ResetAfter: duration(v.reset)}
}

// duration turns microseconds into a Duration; a wait past 285 years is shown as that.
func duration(micros int64) time.Duration {
	return time.Duration(min(micros, maxExact)) * time.Microsecond
}
