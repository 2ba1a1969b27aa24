package headgate

import (
	"math"
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Never is the RetryAfter of a denial that no wait changes. The cost is larger than the limit can
// ever hold, or the request is a cancel that failed.
const Never time.Duration = math.MaxInt64

// Decision is the answer to a [Request]. Its fields describe the state after the request, with the
// same meaning for a grant, a denial and a peek. The zero Decision allows nothing.
//
// Decision must not exceed four words: Go does not return a larger struct in registers, and each
// call would then cost more than the decision.
type Decision struct {
	// Limit is the limit that decided. With several limits, it is the one that denied for the
	// longest, or else the one with the least remaining.
	Limit Limit

	// Remaining is the largest cost that would be granted now. After a [Request.Force] that did not
	// fit, it is the capacity minus the used tokens, which is 0 or less.
	Remaining int64

	// RetryAfter is 0 if the request may go ahead now. For a grant with [Request.MaxWait], it is
	// the wait until the start time. For a denial, it is the shortest wait, to the microsecond,
	// after which the same request would be granted if no other came, or [Never].
	RetryAfter time.Duration

	// ResetAfter is the wait until the key is back in its initial state if no other request
	// comes: a full bucket, an empty window, an empty log.
	ResetAfter time.Duration
}

// Allowed reports whether the request may go ahead. For a peek (cost 0) it reports whether
// a cost of 1 would be granted now. A refund is always allowed.
func (d Decision) Allowed() bool { return d.RetryAfter == 0 && d.Limit.rule != nil }

// Within reports whether the request may go ahead after at most wait. With the MaxWait of the
// request, it reports whether the request was granted.
func (d Decision) Within(wait time.Duration) bool {
	return d.RetryAfter <= wait && d.Limit.rule != nil
}

// Degraded reports that a fallback, not the store, decided. Limit is then this instance's share of
// the limit ([Limit.Share]), and Remaining and the waits are of that share.
func (d Decision) Degraded() bool { return d.Limit.rule != nil && d.Limit.rule.ShareOf != "" }

// Unchecked reports whether a fallback decided without checking a limit. Neither the store nor a
// share could decide, so a denial says nothing about the key. It is false for a cost that the limit
// can never hold, and true for a grant of the mode Open.
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
