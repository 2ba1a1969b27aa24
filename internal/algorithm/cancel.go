package algorithm

// A cancel is a refund that names its start time. It is refused if a later grant or refund moved
// the time of the key; otherwise that time moves back to the start before.

// refuseCancel is the verdict on a cancel of a grant that is not the last one.
func (l *Rule) refuseCancel(k Account, o Order, now int64) (Account, Verdict, bool) {
	_, v := l.decide(k, now, now, 0, Nothing)
	v.Retry = Never
	return k, v.after(now - o.Now), false
}

// refundAhead refunds at k.At, which is ahead, and leaves the time of k as it is: a refund returns
// tokens, not time. A cancel returns its start as well.
func (l *Rule) refundAhead(
	k Account, o Order, charge bool,
) (next Account, v Verdict, changed bool) {
	next, v = l.decide(k, k.At, o.Now, o.Cost, o.charge(charge))
	if next.At == 0 {
		next.State = State{At: k.At, Step: k.At}
	}
	next.Booked, next.Late = true, k.Late
	if o.Cancel == 0 || !charge {
		return next, v.after(k.At - o.Now), charge
	}
	if !k.Late && !k.Scaled {
		next = l.before(next, o.Now)
	}
	_, v = l.decide(next, next.At, next.At, 0, Nothing)
	v.Retry = 0
	return next, v.after(next.At - o.Now), true
}

// late reports whether a cancel of a grant that is booked after k might move time back past the
// start of k. That start was later than it had to be, or the limit had other numbers.
func (l *Rule) late(k Account, now int64) bool {
	return k.Late || k.Scaled || l.before(k, now).At < k.At
}

// before is k as it was before its last start, whose tokens have been refunded: time stands at
// the start before that one, or at now. The state at later times is the same. A fixed or
// calendar window does not know what was used before it: there time stays where it is.
func (l *Rule) before(k Account, now int64) Account {
	at := k.At
	switch {
	case l.Algorithm == FixedWindow, l.Algorithm == CalendarWindow:
	case l.Algorithm == TokenBucket:
		back := l.perRate.floor(l.full - k.Used)
		if k.Used == 0 { // it was full before
			back = l.perRate.ceil(l.full)
		}
		at = max(now, k.At-back)
		k.Used = min(k.Used+(k.At-at)*l.Rate, l.full)
	case l.Algorithm == Stepped:
		steps := min(l.perRefill.floor(l.full-k.Used), l.perPeriod.ceil(max(k.Step-now, 0)))
		k.Step, k.Used = k.Step-steps*l.period, k.Used+steps*l.Refill
		at = max(now, k.Step)
	case l.Algorithm == SlidingWindow:
		at = max(now, l.slidingWindowStart(k))
	case len(k.Log) > 0:
		at = max(now, k.Log[len(k.Log)-1].at())
		if k.Log[0].count() == 0 { // before that, what has been dropped counts
			at = max(at, k.Log[0].at()+l.period)
		}
	default:
		at = now
	}
	k.At, k.Booked = at, at > now
	return k
}

// slidingWindowStart is the first moment in the window of k at which its counts fit.
func (l *Rule) slidingWindowStart(k Account) int64 {
	start := k.At - l.perPeriod.rest(k.At)
	if k.Used == 0 || k.Previous == 0 {
		return start
	}
	weight := max(l.Capacity-k.Used, 0) * l.period / k.Previous
	return min(start+max(l.period-weight, 0), k.At)
}
