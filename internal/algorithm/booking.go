package algorithm

// Booking ahead: the state becomes the one after the last start time that was booked, which
// may lie in the future. For every other request, time stands there until it has come. So
// requests are served first come, first served, with no queue in the store.

// Account is all that is kept of a key under a limit.
type Account struct {
	State
	Log    []Entry // sliding log: the grants, in order of time
	Booked bool    // At is a start time that was booked ahead
	Late   bool    // Booked behind a start that was ahead: a cancel leaves At
	Scaled bool    // Used was scaled to other numbers of a bucket
}

// Order is what a request asks.
type Order struct {
	Now, Cost int64
	MaxWait   int64 // how far ahead the start may be
	Force     bool  // the cost is charged whether or not it fits
	After     int64 // the start is not before this, which the group decides; or 0
	Cancel    int64 // of a refund: the start time of its grant, or 0
	Needs     int64 // with a headroom: what must remain for the cost to be charged, or 0
}

// Take decides o, and returns the account that follows, which must be written if changed
// is set. That is never so unless charge is. The log of the account may share memory with
// k.Log, which a charge may change. The Retry of the verdict is the wait until the start, also if
// the request is granted. Remaining is below 0 only if o is forced and does not fit.
func (l *Rule) Take(k Account, o Order, charge bool) (next Account, v Verdict, changed bool) {
	next, v, changed = l.take(k, o, charge)
	if !o.Force || v.Granted() {
		v.Remaining = max(v.Remaining, 0)
	}
	return next, v, changed
}

func (l *Rule) take(k Account, o Order, charge bool) (next Account, v Verdict, changed bool) {
	if o.Needs > 0 {
		if v = l.withHeadroom(k, o); !v.Granted() {
			return k, v, false
		}
	}
	charge = charge && o.Cost != 0
	ahead, now := k.Booked && k.At > o.Now, o.Now
	if ahead {
		now = k.At
	}
	switch {
	case o.Cancel != 0:
		return l.cancel(k, o, now, charge)
	case ahead && o.Cost < 0:
		return l.refundAhead(k, o, charge)
	case ahead && o.Force && charge && o.Cost > 0:
		return l.forceAhead(k, o)
	case ahead || o.MaxWait > 0 && o.Cost > 0:
		return l.book(k, o, now, charge)
	default:
		next, v = l.decide(k, o.Now, MaxExact, o.Cost, o.charge(charge))
		return next, v, charge && (v.Granted() || o.Force)
	}
}

// withHeadroom decides whether what o needs remains.
func (l *Rule) withHeadroom(k Account, o Order) Verdict {
	o.Cost, o.Needs = o.Needs, 0
	_, v, _ := l.take(k, o, false)
	return v
}

// charge is what o charges, if it is to charge.
func (o *Order) charge(charge bool) Charge {
	switch {
	case !charge:
		return Nothing
	case o.Force:
		return Force
	default:
		return Grants
	}
}

// Initial reports whether k is in its initial state at now.
func (l *Rule) Initial(k Account, now int64) bool {
	if k.Booked && k.At > now {
		return false
	}
	_, v := l.decide(k, now, now, 0, Nothing)
	return v.Reset == 0
}

// decide is [Rule.Decide] for every algorithm. A log keeps what has not expired at since.
func (l *Rule) decide(k Account, now, since, cost int64, charge Charge) (Account, Verdict) {
	if l.Algorithm == SlidingLog {
		return l.slidingLog(k, now, since, cost, charge)
	}
	s, v := l.Decide(k.State, now, cost, charge)
	return Account{State: s}, v
}

// book finds the start of o: the first moment, at now or later, at which it fits after all earlier
// grants.
func (l *Rule) book(
	k Account, o Order, now int64, charge bool,
) (next Account, v Verdict, changed bool) {
	ahead := now > o.Now
	_, v = l.decide(k, now, now, o.Cost, Nothing)
	start := max(now+v.Retry, o.After)
	if v.Retry == Never || start > MaxExact {
		v.Retry = Never
		return k, v.after(now - o.Now), false
	}
	unknown := l.unknown(now+v.Retry, o.Now)
	v.Retry = start - o.Now
	if v.Retry > o.MaxWait {
		return k, v.after(now - o.Now), false
	} else if unknown {
		v.Retry = Never
		return k, v.after(now - o.Now), false
	}
	wait, since := v.Retry, o.Now
	if !ahead {
		since = max(o.Now, k.At)
	}
	next, then := l.decide(k, start, since, o.Cost, o.charge(charge))
	if then.Retry == Never { // the log is too long
		then.Remaining, then.Reset = 0, then.Reset+wait
		return k, then, false
	}
	if !charge {
		return k, v.after(now - o.Now), false
	}
	then.Retry = wait
	if k.At > start { // the clock has stepped back, and another of the group waits
		then.Reset += wait
		return next, then, true
	}
	next.Booked, next.Late = wait > 0, ahead
	return next, then.after(wait), true
}

// forceAhead charges o while time stands at k.At, so that it does not fit. A cancel of the last
// start leaves time where it is.
func (l *Rule) forceAhead(k Account, o Order) (next Account, v Verdict, changed bool) {
	next, _ = l.decide(k, k.At, k.At, o.Cost, Force)
	next.Booked, next.Late = true, true
	_, v = l.decide(next, k.At, k.At, o.Cost, Nothing)
	ahead, over := k.At-o.Now, min(v.Remaining, 0)
	if v.Retry != Never {
		v.Retry += ahead
	}
	v = v.after(ahead)
	v.Remaining = over
	return next, v, true
}

// after is v, the verdict at a time that is so far ahead, as it is seen now: nothing
// remains until then.
func (v Verdict) after(ahead int64) Verdict {
	if ahead > 0 {
		v.Remaining = 0
		v.Reset += ahead
	}
	return v
}
