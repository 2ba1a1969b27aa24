package headgate

import (
	"time"

	"github.com/headgate/headgate/internal/algorithm"
)

// Algorithm is how a limit counts. Its String is its name in the text form.
type Algorithm uint8

// The algorithms. See the constructors of [Limit] for what each one grants.
const (
	AlgorithmTokenBucket        = Algorithm(algorithm.TokenBucket)
	AlgorithmSteppedTokenBucket = Algorithm(algorithm.Stepped)
	AlgorithmFixedWindow        = Algorithm(algorithm.FixedWindow)
	AlgorithmSlidingWindow      = Algorithm(algorithm.SlidingWindow)
	AlgorithmSlidingLog         = Algorithm(algorithm.SlidingLog)
	AlgorithmCalendarWindow     = Algorithm(algorithm.CalendarWindow)
)

var algorithmNames = [...]string{
	"none", "token-bucket", "stepped", "fixed-window", "sliding-window", "sliding-log",
	"calendar-window",
}

func (a Algorithm) String() string {
	if int(a) >= len(algorithmNames) {
		return "none"
	}
	return algorithmNames[a]
}

// Limit is a rule: an algorithm and its numbers, such as "100 per minute, burst 20". It is a small
// value that is cheap to copy and can be a map key. Limits with the same algorithm, numbers and
// name are equal, unless one is a [Limit.Share]. Make one with a constructor or [ParseLimit] and
// keep it; making one costs about a microsecond.
//
// The zero Limit is not valid. A constructor that gets wrong numbers, or numbers that cannot be
// counted exactly, returns a Limit that is not valid: [Limit.Validate] and every call with it
// return an error.
type Limit struct {
	rule *algorithm.Rule // nil in the zero Limit; one for all equal limits
}

var unlimitedRule algorithm.Rule

// Unlimited returns the Limit that is in the decision for a key without limits. It prints as
// "unlimited", and no store accepts it.
func Unlimited() Limit { return Limit{&unlimitedRule} }

// PerSecond is a token bucket that refills n tokens each second; see [Per].
func PerSecond(n int64) Limit { return Per(n, time.Second) }

// PerMinute is a token bucket that refills n tokens each minute; see [Per].
func PerMinute(n int64) Limit { return Per(n, time.Minute) }

// PerHour is a token bucket that refills n tokens each hour; see [Per].
func PerHour(n int64) Limit { return Per(n, time.Hour) }

// PerDay is a token bucket that refills n tokens each 24 hours; see [Per]. For dates, use [Daily].
func PerDay(n int64) Limit { return Per(n, 24*time.Hour) }

// Per is a token bucket: n tokens flow in evenly over each period, and a request is
// granted while the bucket holds its cost. The bucket is full initially and holds n
// tokens, or as many as [Limit.Burst] says. In its first period, a new key can be granted a full
// bucket and n tokens more.
//
// The rate is exact: 3 per second, 7 per hour, and 1.5 per second (3 every 2 s) never drift. For
// that, burst x period / g must be below 2^52, where period is in microseconds and g is the
// greatest common divisor of period and n. Only an n that has few common divisors with a long
// period comes near that bound: 100,003 a day is refused with a burst of over 52,124.
//
// GCRA (the generic cell rate algorithm of ITU-T I.371) and a leaky bucket used as a meter are the
// same as a token bucket.
func Per(n int64, period time.Duration) Limit {
	return newLimit(terms{Algorithm: algorithm.TokenBucket, Capacity: n, Refill: n, Every: period})
}

// SteppedTokenBucket is a token bucket whose n tokens arrive together, every period. Periods are
// counted from the first take from a full bucket. It holds n tokens, or as many as [Limit.Burst]
// says.
func SteppedTokenBucket(n int64, period time.Duration) Limit {
	return newLimit(terms{Algorithm: algorithm.Stepped, Capacity: n, Refill: n, Every: period})
}

// FixedWindow grants n in each window; windows are aligned to the Unix epoch. Around the edge
// between two windows it may grant 2n in a short time. With an n of 0, it denies every request.
func FixedWindow(n int64, window time.Duration) Limit {
	return newLimit(terms{Algorithm: algorithm.FixedWindow, Capacity: n, Every: window})
}

// SlidingWindow approximates [SlidingLog] in the space of two counters. It counts the grants of two
// windows aligned to the Unix epoch: the current and the previous one. It grants while previous x
// (window - elapsed) / window + current + cost is at most n, where elapsed is the time since the
// current window began. A caller that always waits gets (n-1)/n of the rate, and
// at least half. If n is below 10, use [SlidingLog].
//
// To stay exact, n x window must be below 2^52 microseconds: n is at most 1,250,999 in an
// hour, 52,124 in a day, 1,737 in 30 days.
func SlidingWindow(n int64, window time.Duration) Limit {
	return newLimit(terms{Algorithm: algorithm.SlidingWindow, Capacity: n, Every: window})
}

// SlidingLog never grants more than n in any window, wherever it begins. It remembers each grant
// for as long as window. It keeps up to n entries a key; n is at most 65,535.
func SlidingLog(n int64, window time.Duration) Limit {
	return newLimit(terms{Algorithm: algorithm.SlidingLog, Capacity: n, Every: window})
}

// Burst returns the bucket l with room for n tokens: the most that it grants at once. A window has
// no burst: its Burst returns a Limit that is not valid.
func (l Limit) Burst(n int64) Limit {
	return l.with(func(t *terms) {
		if t.IsBucket() {
			t.Capacity = n
		} else {
			t.Refill = n // check refuses this refill
		}
	})
}

// Named returns l with the given name. State belongs to the name and the algorithm, so a limit
// whose numbers change keeps what is used: a bucket keeps the used fraction of its capacity, and a
// window keeps its count. The change itself gives no fresh budget, and denies no key longer than
// the new limit takes to reset. A window of another length is another limit, and starts empty. A
// calendar in another zone or with another anchor can give fresh budgets: see [Limit.In].
//
// A bucket that gets no request until it is full under the old numbers is full under the new ones,
// too. If a request is denied before that, the bucket becomes full at the time that the new numbers
// give. There are two exceptions: see docs/design/exactness.md.
//
// If the rate of a limit is raised briefly and then restored, its keys may have full buckets.
//
// During a rolling deploy, the old and the new numbers of a bucket can alternate on a key. In a
// time t, both together then grant at most max(capacity) x (1 + t x max(rate / capacity)).
//
// A name is 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter. The
// empty name makes l unnamed. If l is a [Limit.Share], the result is an ordinary limit: its
// decisions are not [Decision.Degraded].
func (l Limit) Named(name string) Limit {
	return l.with(func(t *terms) { t.Name, t.ShareOf, t.Unknown = name, "", false })
}

// with returns l with changed terms.
func (l Limit) with(change func(*terms)) Limit {
	if l.rule == nil {
		return l
	}
	t := *l.terms()
	change(&t)
	return newLimit(t)
}

// Name is the name given by [Limit.Named], or else the text form of the limit.
func (l Limit) Name() string {
	switch {
	case l == Unlimited():
		return "unlimited"
	case l.rule != nil && l.rule.Name != "":
		return l.rule.Name
	case l.rule != nil && l.rule.Valid:
		return l.rule.ID // the text, made once
	}
	return text(l.terms())
}

// ID and a key together identify a state: stores build their keys from both. The ID of an unnamed
// limit is its text form. The ID of a named token bucket is its name. Other named limits add the
// algorithm, and windows also their length or unit. The ID is empty if l is not valid.
func (l Limit) ID() string {
	if l.rule == nil {
		return ""
	}
	return l.rule.ID
}

// Algorithm is how l counts.
func (l Limit) Algorithm() Algorithm { return Algorithm(l.terms().Algorithm) }

// Capacity returns the largest cost that can ever be granted at once. That is the size of a
// bucket, or the count of a window.
func (l Limit) Capacity() int64 { return l.terms().Capacity }

// Refill is the number of tokens that a bucket gains each Period; 0 for windows.
func (l Limit) Refill() int64 { return l.terms().Refill }

// Period returns the refill period of a bucket, or the length of a window. For a calendar window,
// it returns 24 hours, 7, 31 or 366 days, whatever the length of the current window.
func (l Limit) Period() time.Duration { return l.terms().Every }

// Rate returns the average rate of l: n tokens in each period.
func (l Limit) Rate() (n int64, period time.Duration) { return l.terms().Rate() }

type terms = algorithm.Terms

// newLimit returns the one Limit of terms t.
func newLimit(t terms) Limit { return Limit{algorithm.Intern(t, newRule)} }

func newRule(t terms) *algorithm.Rule {
	if t == (terms{}) || check(&t) != nil {
		return &algorithm.Rule{Terms: t}
	}
	return algorithm.NewRule(t, id(&t))
}

var noTerms terms

// terms returns the terms of l, which are only read: every decision asks for some of them.
func (l Limit) terms() *terms {
	if l.rule == nil {
		return &noTerms
	}
	return &l.rule.Terms
}

func (l Limit) valid() bool { return l.rule != nil && l.rule.Valid }

func (l Limit) sameState(m Limit) bool { return l == m || l.ID() == m.ID() }
