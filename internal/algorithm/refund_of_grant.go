package algorithm

// A refund may name the start time of its grant. If the start is ahead, the refund is a cancel: it
// is refused unless the start is the time of the key, so that nothing was booked since. If the
// start has come, it gives back only what the state still holds of the grant. The state of a bucket
// shows that only if nothing was granted since.

// cancel refunds the grant that o names. Time is at now for the key.
func (l *Rule) cancel(
	k Account, o Order, now int64, charge bool,
) (next Account, v Verdict, changed bool) {
	late := o.Cancel <= o.Now
	switch {
	case late && (l.Algorithm == SlidingWindow || l.Algorithm == SlidingLog):
		return l.refundLate(k, o, now, charge)
	case late && !l.IsBucket():
		start, _ := l.window(max(now, k.At))
		charge = charge && start <= o.Cancel
	case k.At > o.Cancel || !late && k.At < o.Cancel:
		_, v = l.decide(k, now, now, 0, Nothing)
		v.Retry = Never
		return k, v.after(now - o.Now), false
	}
	o.Cancel = 0
	next, v, changed = l.take(k, o, charge)
	if late || !changed || !next.Booked || next.Late || k.Scaled {
		return next, v, changed
	}
	next = l.before(next, o.Now)
	_, v = l.decide(next, next.At, next.At, o.Cost, Nothing)
	return next, v.after(next.At - o.Now), true
}

// refundLate takes a grant out of the window or the entry that has it. It leaves the time of k.
func (l *Rule) refundLate(
	k Account, o Order, now int64, charge bool,
) (next Account, v Verdict, changed bool) {
	n, start := -max(o.Cost, -l.maxRefund), k.At-l.perPeriod.rest(k.At)
	switch {
	case !charge:
	case l.Algorithm == SlidingLog:
		k.Log = without(k.Log, o.Cancel, n)
	case o.Cancel >= start+l.period: // the grant is not in the state any more
	case o.Cancel >= start:
		k.Used = max(k.Used-n, 0)
	case o.Cancel >= start-l.period:
		k.Previous = max(k.Previous-n, 0)
	}
	_, v = l.decide(k, now, now, o.Cost, Nothing)
	if now == o.Now && v.Reset == 0 {
		k = Account{}
	}
	return k, v.after(now - o.Now), charge
}

// refundAhead refunds at k.At, which is ahead, and leaves the time of k as it is: a refund returns
// tokens, not time.
func (l *Rule) refundAhead(
	k Account, o Order, charge bool,
) (next Account, v Verdict, changed bool) {
	next, v = l.decide(k, k.At, o.Now, o.Cost, o.charge(charge))
	if next.At == 0 {
		next.State = State{At: k.At, Step: k.At}
	}
	next.Booked, next.Late = true, k.Late
	return next, v.after(k.At - o.Now), charge
}

// before is k with the start of a cancelled grant given back, whose tokens have been refunded: time
// moves back to now, or as far as the state shows what was used. Nothing else was booked ahead. The
// state at later times is the same. A calendar stays where it is.
func (l *Rule) before(k Account, now int64) Account {
	at := k.At
	switch l.Algorithm {
	case TokenBucket: // to where it was empty
		at = max(now, k.At-l.perRate.floor(l.full-k.Used))
		k.Used += (k.At - at) * l.Rate
	case Stepped:
		steps := min(l.perRefill.floor(l.full-k.Used), l.perPeriod.ceil(max(k.Step-now, 0)))
		k.Step, k.Used = k.Step-steps*l.period, k.Used+steps*l.Refill
		at = max(now, k.Step)
	case FixedWindow, SlidingWindow:
		at = max(now, k.At-l.perPeriod.rest(k.At))
	case SlidingLog:
		at = now
		if last := len(k.Log) - 1; last >= 0 {
			at = max(at, k.Log[last].at())
			if k.Log[0].count() == 0 { // before that, what has been dropped counts
				at = max(at, k.Log[0].at()+l.period)
			}
		}
	}
	k.At, k.Booked = at, at > now
	return k
}
