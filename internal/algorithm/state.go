package algorithm

// State is what a store keeps for a key under a limit, except the entries of a sliding
// log. The zero State is the initial state: nothing is used.
type State struct {
	At       int64 // when it last changed, in microseconds since the Unix epoch
	Used     int64 // what is used at At; each algorithm says in which unit
	Previous int64 // sliding window: the grants of the window before
	Step     int64 // stepped bucket: the latest step that is not after At
}

// Verdict is a decision in microseconds.
type Verdict struct {
	Remaining int64
	Retry     int64 // 0 if granted, or Never
	Reset     int64
}

// Charge says whether a decision charges the cost.
type Charge uint8

// What a decision charges.
const (
	Nothing Charge = iota
	Grants         // if it fits
	Force          // also if it does not fit
)

// Never is the Retry of a cost that can never fit.
const Never = -1

// Granted reports whether the request may go ahead now.
func (v Verdict) Granted() bool { return v.Retry == 0 }

// Within reports whether the request may go ahead after at most wait.
func (v Verdict) Within(wait int64) bool { return v.Retry != Never && v.Retry <= wait }

// Decide runs the algorithm of l. If the request is charged, it returns the state that follows;
// otherwise that must not be written. It is not for sliding logs. Remaining is below 0 if more
// than the capacity is used.
//
// A time before s.At counts as s.At: a clock that steps back grants nothing extra and takes nothing
// away. The skew between them is added to the waits, which are measured from now.
func (l *Rule) Decide(s State, now, cost int64, charge Charge) (State, Verdict) {
	switch l.Algorithm {
	case TokenBucket:
		return l.tokenBucket(s, now, cost, charge)
	case Stepped:
		return l.steppedTokenBucket(s, now, cost, charge)
	case SlidingWindow:
		return l.slidingWindow(s, now, cost, charge)
	default:
		return l.fixedWindow(s, now, cost, charge)
	}
}

// forced is what is used after ask tokens more, as far as it can be counted.
func (l *Rule) forced(used, ask int64) int64 {
	if ask > (l.maxUsed-used)/l.Unit {
		return l.maxUsed
	}
	return used + ask*l.Unit
}

// ask is the cost to decide by: a peek asks for 1, and more than everything cannot be refunded.
func (l *Rule) ask(cost int64) int64 {
	if cost == 0 {
		return 1
	}
	return max(cost, -l.maxRefund)
}
