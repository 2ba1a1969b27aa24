package headgate

import (
	"time"
)

// Algorithm is how a limit counts. Its String is its name in the text form.
type Algorithm uint8

// The algorithms. See the constructors of [Limit] for what each one grants.
const (
	AlgorithmTokenBucket Algorithm = iota + 1
	AlgorithmStepped
	AlgorithmFixedWindow
	AlgorithmSlidingWindow
	AlgorithmSlidingLog
)

var algorithmNames = [...]string{"none", "token-bucket", "stepped", "fixed-window", "sliding-window", "sliding-log"}

func (a Algorithm) String() string {
	if int(a) >= len(algorithmNames) {
		return "none"
	}
	return algorithmNames[a]
}

const (
	// maxExact is the largest whole number that Go's int64 and the doubles of
	// Lua hold alike together with all its neighbours. Every intermediate of an algorithm
	// stays at or below it.
	maxExact = 1<<53 - 1

	// maxLog bounds a sliding log, which keeps every grant in its window.
	maxLog = 1<<16 - 1

	// maxPair bounds a sliding window, whose two counts share one word.
	maxPair = 1<<32 - 1
)

// Limit is a rule: an algorithm and its numbers, such as "100 per minute,
// burst 20". It is a small comparable value, cheap to copy, equal to every Limit
// made from the same numbers and name, and good as a map key. Make one with a
// constructor or [ParseLimit] and keep it; making one costs about a microsecond.
//
// The zero Limit is not valid. A constructor given numbers that no store could
// count returns a Limit whose [Limit.Validate] says so, and so does every use of it.
type Limit struct {
	rule *rule // nil in the zero Limit; one copy for equal limits, see intern
}

// Unlimited is the Limit in the decision for a key without limits. It prints as
// "unlimited", and no store accepts it.
var Unlimited = Limit{&rule{}}

// terms are what was asked for: two limits of the same terms are equal.
type terms struct {
	name      string
	algorithm Algorithm
	capacity  int64         // most tokens held at once, or most grants in a window
	refill    int64         // tokens that arrive each period; buckets only
	every     time.Duration // the refill period, or the window
	shareOf   string        // of a share, the ID of what it is part of, see Limit.Share
}

// rule is what a Limit stands for: its terms, and all that a decision needs
// computed from them once.
type rule struct {
	terms
	period int64 // every in microseconds

	// The token bucket counts in units: refill/period reduced to rate/unit, so
	// that a token is unit units and rate units arrive each microsecond. For others a
	// token is 1.
	unit int64
	rate int64
	full int64 // units in a full bucket; of a window, what can be counted
	fill int64 // microseconds from an empty token bucket to a full one, rounded up

	// mostUsed is the most that a state counts. More than a full bucket may be missing
	// from a stepped one, for which another version granted what its next step brings.
	mostUsed int64

	perPeriod, perRefill, perUnit, perRate divisor

	id       string // see Limit.ID
	identity uint64 // a hash of id, for Memory
	fault    *InvalidError
	valid    bool
}

// PerSecond is a token bucket that refills n tokens each second; see [Per].
func PerSecond(n int64) Limit { return Per(n, time.Second) }

// PerMinute is a token bucket that refills n tokens each minute; see [Per].
func PerMinute(n int64) Limit { return Per(n, time.Minute) }

// PerHour is a token bucket that refills n tokens each hour; see [Per].
func PerHour(n int64) Limit { return Per(n, time.Hour) }

// PerDay is a token bucket that refills n tokens each 24 hours; see [Per].
func PerDay(n int64) Limit { return Per(n, 24*time.Hour) }

// Per is a token bucket: n tokens flow in evenly over each period, and a request is
// granted while the bucket holds its cost. The bucket is full initially and holds n
// tokens, or as many as [Limit.Burst] says.
//
// The rate is exact: 3 per second, 7 per hour, and 1.5 per second (3 every 2 s) never
// drift. For that, burst x period / g must be below 2^52, where period is in
// microseconds and g is the greatest common divisor of period and n. Only an odd rate
// over a long period comes near it: 100,003 a day is refused with a burst of over 52,124.
//
// A token bucket is the same as GCRA, the generic cell rate algorithm of ITU-T I.371,
// and as a leaky bucket used as a meter.
func Per(n int64, period time.Duration) Limit {
	return newLimit(terms{algorithm: AlgorithmTokenBucket, capacity: n, refill: n, every: period})
}

// SteppedTokenBucket is a token bucket whose n tokens arrive together, at each whole
// period since the bucket was last full and first taken from. It holds n tokens, or as
// many as [Limit.Burst] says.
func SteppedTokenBucket(n int64, period time.Duration) Limit {
	return newLimit(terms{algorithm: AlgorithmStepped, capacity: n, refill: n, every: period})
}

// Burst returns the bucket l with room for n tokens: the most that it grants at once.
// A window has no burst: its Burst is not valid.
func (l Limit) Burst(n int64) Limit {
	if l.rule == nil {
		return l
	}
	t := l.rule.terms
	if t.isBucket() {
		t.capacity = n
	} else {
		t.refill = n // which check refuses
	}
	return newLimit(t)
}

// FixedWindow grants n in each window, windows being aligned to the Unix epoch.
// Around the edge between two windows it may grant 2n in a moment.
func FixedWindow(n int64, window time.Duration) Limit {
	return newLimit(terms{algorithm: AlgorithmFixedWindow, capacity: n, every: window})
}

// SlidingWindow counts two windows aligned to the Unix epoch, and weighs the
// last one by how much of it a window ending now would still cover: it grants
// while previous x (window - elapsed) / window + current + cost is at most n.
// It approximates [SlidingLog] in the space of two counters.
//
// To stay exact, n x window must be below 2^52 microseconds: n is at most 1,250,999
// in an hour, 52,124 in a day, 1,737 in 30 days.
func SlidingWindow(n int64, window time.Duration) Limit {
	return newLimit(terms{algorithm: AlgorithmSlidingWindow, capacity: n, every: window})
}

// SlidingLog remembers each grant for as long as window, and never grants more
// than n in any window, wherever it begins. It keeps up to n entries a key; n is
// at most 65,535.
func SlidingLog(n int64, window time.Duration) Limit {
	return newLimit(terms{algorithm: AlgorithmSlidingLog, capacity: n, every: window})
}

// newRule computes the rule for t, or finds its fault.
func newRule(t terms) *rule {
	r := &rule{terms: t, period: t.every.Microseconds()}
	if r.fault = r.check(); r.fault != nil {
		return r
	}
	r.valid = t.algorithm != 0
	r.derive()
	r.id = r.identityText()
	r.identity = mixed(fnv1a(r.id))
	return r
}

// derive reduces the rate and computes what every decision needs.
func (r *rule) derive() {
	r.perPeriod = newDivisor(max(r.period, 1))
	r.unit, r.full = 1, maxExact
	switch r.algorithm {
	case AlgorithmTokenBucket:
		g := gcd(r.refill, r.period)
		r.unit, r.rate = r.period/g, r.refill/g
		r.perUnit, r.perRate = newDivisor(r.unit), newDivisor(r.rate)
		r.full = r.capacity * r.unit
		r.fill = ceilDiv(r.full, r.rate)
	case AlgorithmStepped:
		r.perRefill = newDivisor(r.refill)
		r.full = r.capacity
	case AlgorithmSlidingWindow:
		r.full = r.mostCount()
	}
	r.mostUsed = r.full
	if r.algorithm == AlgorithmStepped {
		r.mostUsed = min(r.capacity+r.refill, r.mostStepped())
	}
}

// Named returns l under a name of its own. State belongs to the name and the
// algorithm, so a named limit whose numbers change keeps what has been consumed:
// the change takes effect at once, hands out no fresh budget and locks nobody
// out. Two versions of it may take turns on a key, as while a fleet rolls out the
// change, or it may be taken back: buckets then grant no more together than the more
// generous would alone. A name is 1 to 64 letters, digits, dots, dashes and underscores, and
// begins with a letter. The empty name makes l unnamed. What is named is no [Limit.Share] any more.
func (l Limit) Named(name string) Limit {
	if l.rule == nil {
		return l
	}
	t := l.rule.terms
	t.name, t.shareOf = name, ""
	return newLimit(t)
}

func (l Limit) terms() terms {
	if l.rule == nil {
		return terms{}
	}
	return l.rule.terms
}

// Name is the name given by [Limit.Named], or else the text form of the limit.
func (l Limit) Name() string {
	switch {
	case l == Unlimited:
		return "unlimited"
	case l.rule == nil:
		return (&terms{}).text()
	case l.rule.name != "":
		return l.rule.name
	case l.rule.valid:
		return l.rule.id // the text, made once
	}
	return l.rule.text()
}

// ID is what state belongs to, together with the key: the text of an unnamed
// limit; the name of a named one, followed by its algorithm unless that is the
// token bucket. Stores build their keys from it. It is empty if l is not valid.
func (l Limit) ID() string {
	if l.rule == nil {
		return ""
	}
	return l.rule.id
}

// Algorithm says how l counts.
func (l Limit) Algorithm() Algorithm { return l.terms().algorithm }

// Capacity is the largest cost that can ever be granted at once: the size of a
// bucket, the count of a window.
func (l Limit) Capacity() int64 { return l.terms().capacity }

// Refill is the number of tokens that a bucket gains each Period; 0 for windows.
func (l Limit) Refill() int64 { return l.terms().refill }

// Period is the refill period of a bucket, or the length of a window.
func (l Limit) Period() time.Duration { return l.terms().every }

// Rate is the token bucket's refill in lowest terms: rate units arrive each
// microsecond, and a token is unit units. Both are 0 for other algorithms.
func (l Limit) Rate() (rate, unit int64) {
	if l.Algorithm() != AlgorithmTokenBucket {
		return 0, 0
	}
	return l.rule.rate, l.rule.unit
}

func (l Limit) sameState(m Limit) bool { return l == m || l.ID() == m.ID() }

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// ceilDiv rounds a/b up, for a >= 0 and b > 0 with a+b below 2^63.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// mixed spreads every bit of h over all of them (the finalizer of SplitMix64), so
// that limits of similar names lie far apart in a table.
func mixed(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// fnv1a is the 64-bit FNV-1a hash. It only ever sees the names of limits, and
// is mixed with a keyed hash of the key before it chooses a place.
func fnv1a(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}
