package headgate

import (
	"math"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Never is the RetryAfter of a denial that no wait changes. For example, the cost is larger than
// the limit can ever hold, or the request is a cancel that failed. A booking too far ahead under a
// calendar also gets it: see [Daily].
const Never time.Duration = math.MaxInt64

// Decision is the answer to a [Request]. Its fields describe the state after the request, with the
// same meaning for a grant, a denial and a peek. The zero Decision allows nothing. When package
// fallback or denycache decides without the store, some fields differ: see there.
//
// On 64-bit machines, a Decision has four words. Go does not return a larger struct in registers,
// so returning one would take longer than deciding.
type Decision struct {
	// Limit is the limit that decided. With several limits, it is the one that denied with the
	// longest RetryAfter. If none denied, it is the one with the least Remaining.
	Limit Limit

	// Remaining is the largest cost that would be granted now. After a [Request.Force] that did not
	// fit, it is the capacity minus the used tokens, which is 0 or less.
	Remaining int64

	// RetryAfter is 0 if the request may go ahead now. For a grant with [Request.MaxWait], it is
	// the wait until the start time. For a denial, it is [Never], or the shortest wait, to the
	// microsecond, after which the same request would be granted if no other came.
	RetryAfter time.Duration

	// ResetAfter is the wait until the key is back in its initial state (a full bucket, an empty
	// window or an empty log) if no other request comes.
	ResetAfter time.Duration
}

// Allowed reports whether the request may go ahead. For a peek (cost 0) it reports whether a cost
// of 1 would be granted now. A refund is always allowed; a cancel ([Request.Start]) can fail.
func (d Decision) Allowed() bool { return d.RetryAfter == 0 && d.Limit.rule != nil }

// Within reports whether the request may go ahead after at most wait. If wait is the MaxWait of the
// request, it reports whether the request was granted.
func (d Decision) Within(wait time.Duration) bool {
	return d.RetryAfter <= wait && d.Limit.rule != nil
}

// Degraded reports whether a fallback, not the store, decided. Limit is then this instance's share
// of the limit ([Limit.Share]), and Remaining and the waits are of that share.
func (d Decision) Degraded() bool { return d.Limit.rule != nil && d.Limit.rule.ShareOf != "" }

// Unchecked reports whether a fallback decided without checking a limit. Neither the store nor a
// share could decide, so a denial says nothing about the key. Unchecked is true for a grant by
// fallback.Open. It is false for the denial of a cost that the limit can never hold.
func (d Decision) Unchecked() bool {
	return d.RetryAfter != Never && d.Limit.rule != nil && d.Limit.rule.Unknown
}

func decision(l Limit, v algorithm.Verdict) Decision {
	d := Decision{l, v.Remaining, Never, duration(v.Reset)}
	if v.Retry != algorithm.Never {
		d.RetryAfter = duration(v.Retry)
	}
	return d
}

// duration turns microseconds into a Duration; a wait past 285 years is shown as that.
func duration(micros int64) time.Duration {
	return time.Duration(min(micros, maxExact)) * time.Microsecond
}

var unlimited = Decision{Limit: Unlimited(), Remaining: math.MaxInt64}

// Strictest returns the strictest of several decisions made together. That is the denial with the
// longest RetryAfter. If there is no denial, it is the grant with the least Remaining. If several
// are equal, it is the first. Without decisions, it is a grant by [Unlimited].
func Strictest(ds []Decision) Decision {
	if len(ds) == 0 {
		return unlimited
	}
	strictest := ds[0]
	for _, d := range ds[1:] {
		if stricter(d, strictest) {
			strictest = d
		}
	}
	return strictest
}

func stricter(d, than Decision) bool {
	switch {
	case d.Allowed() != than.Allowed():
		return !d.Allowed()
	case d.Allowed():
		return d.Remaining < than.Remaining
	default:
		return d.RetryAfter > than.RetryAfter
	}
}
