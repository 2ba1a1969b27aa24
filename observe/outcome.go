package observe

import (
	"time"

	"github.com/headgate/headgate"
)

// Outcome is the result of a request. Its String is one word, fit for a label of a metric.
type Outcome uint8

// The outcomes. Each request has one of them.
const (
	Allowed    Outcome = iota + 1 // granted, to start at once
	Reserved                      // granted, to start later (see headgate.Request.MaxWait)
	Denied                        // refused by this limit, or forced and charged beyond it
	RolledBack                    // refused by another limit of the same TakeAll: nothing charged
	Peeked                        // a cost of 0
	Refunded                      // a negative cost
	Failed                        // an error: not decided, as far as the store can tell
)

// Outcomes is the number of values of [Outcome], including the zero value.
const Outcomes = len(outcomeNames)

var outcomeNames = [...]string{
	"none", "allowed", "reserved", "denied", "rolled_back", "peeked", "refunded", "error",
}

func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return "none"
	}
	return outcomeNames[o]
}

// outcome returns the outcome of r, which was decided by itself or in a group. The group waits for
// at most patience; refused reports whether it was refused.
func outcome(
	r *headgate.Request, d headgate.Decision, patience time.Duration, refused bool, err error,
) Outcome {
	switch {
	case err != nil:
		return Failed
	case refuses(r, d, patience):
		return Denied
	case r.Cost == 0:
		return Peeked
	case refused && !r.Forced():
		return RolledBack
	case r.Cost < 0:
		return Refunded
	case d.RetryAfter > 0:
		return Reserved
	default:
		return Allowed
	}
}

// refuses reports whether r refused the group that it is in: a charge that does not fit in time,
// or a cancel that comes too late.
func refuses(r *headgate.Request, d headgate.Decision, patience time.Duration) bool {
	if r.Forced() {
		return !d.Allowed()
	}
	if r.Cost > 0 {
		return !d.Within(patience)
	}
	return r.Cost < 0 && d.RetryAfter == headgate.Never
}

// patienceOf returns how long a group waits: as long as the least patient charge in it.
func patienceOf(rs []headgate.Request) time.Duration {
	patience := headgate.Never
	for i := range rs {
		if rs[i].Cost > 0 && !rs[i].Force {
			patience = min(patience, rs[i].MaxWait)
		}
	}
	return patience
}
