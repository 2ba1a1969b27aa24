package headgate

// outlook is what an answer foretells of a key, for as long as nobody else comes. The
// instant at which a cost fits is fixed, and so is that at which the key is as at first
// sight. Remaining stays what it was until one token more fits, and grows from there
// by what the algorithm says. Times are microseconds since the answer.
//
// What an answer does not tell is the state behind it: that its time may be ahead, because
// a clock has stepped back or a turn is booked. Time stands still for the key then; and
// nothing at all remains before a turn that is ahead.
type outlook struct {
	l         *rule
	remaining int64
	reset     int64
	steady    int64 // until when no more than remaining fits, for certain
	known     [4]knownWait
	next      uint8 // which of them makes way
}

// knownWait is the wait of a cost that was refused.
type knownWait struct{ cost, retry int64 }

// foretold is the outlook after an answer to cost, which was charged nothing. It is not
// ok if the answer is one that says less than others do: with waits that were cut off at 285
// years, or that depend on what strangers do; or of a share of l ([Decision.Degraded]), since the
// next one may be of l.
func foretold(l *rule, d Decision, cost int64) (o outlook, ok bool) {
	o = outlook{l: l, remaining: d.Remaining, reset: d.ResetAfter.Microseconds()}
	retry := d.RetryAfter.Microseconds()
	switch fits := cost <= o.remaining; {
	case d.Limit.rule != l:
		return o, false
	case o.remaining < 0 || o.reset >= maxExact || fits != (retry == 0):
		return o, false
	case o.reset == 0 && o.remaining != l.capacity:
		return o, false
	case (cost > l.capacity) != (d.RetryAfter == Never):
		return o, false
	case d.RetryAfter == Never, fits:
		retry = 0
	case retry > o.reset:
		return o, false
	}
	o.steady = o.unchanging()
	if retry > 0 {
		o.learn(cost, retry)
	}
	return o, true
}

// unchanging is until when Remaining stays what it is, as far as the algorithm tells. If
// anything remains, no turn is ahead, and it tells what is used.
func (o *outlook) unchanging() int64 {
	switch {
	case o.reset == 0:
		return maxExact
	case o.remaining == 0:
		return 0
	case o.l.algorithm == AlgorithmFixedWindow:
		return o.reset
	case o.l.algorithm == AlgorithmStepped:
		return o.reset - (o.steps(o.l.full-o.remaining)-1)*o.l.period
	default:
		return 0
	}
}

// steps is how many steps of a stepped bucket bring n tokens.
func (o *outlook) steps(n int64) int64 { return o.l.perRefill.ceil(n) }

// learn adds that cost was refused and fits after retry.
func (o *outlook) learn(cost, retry int64) {
	o.known[o.next%uint8(len(o.known))] = knownWait{cost, retry}
	o.next++
	if cost == o.remaining+1 {
		o.steady = max(o.steady, retry)
	}
}

// at is the verdict on a cost above 0 when so much time has passed, uncharged. It is not ok
// unless every number in it is certain.
func (o *outlook) at(cost, elapsed int64) (v verdict, ok bool) {
	if o.reset > 0 {
		if v.reset = o.reset - elapsed; v.reset <= 0 {
			return v, false
		}
	}
	v.remaining, ok = o.remainingAt(elapsed)
	if ok && cost > v.remaining {
		v.retry, ok = o.retryAt(cost, elapsed)
	}
	return v, ok
}

func (o *outlook) remainingAt(elapsed int64) (remaining int64, ok bool) {
	if elapsed < o.steady {
		return o.remaining, true
	}
	least, most, ok := o.used(elapsed)
	if !ok {
		return 0, false
	}
	// While its time is ahead, a bucket holds what it did, and no less than the line
	// on which it is later. That is true of one with nothing left only if no turn is
	// ahead: for certain when one token would fit, or would have.
	low := max(o.l.perUnit.floor(max(o.l.full-most, 0)), o.remaining)
	high := max(o.l.perUnit.floor(max(o.l.full-least, 0)), o.remaining)
	return low, low == high && (high == 0 || o.remaining > 0 || o.fitsBy(elapsed))
}

// used is the least and the most that may be missing from a token bucket, whose reset
// is rounded up to a microsecond. It is not ok of other algorithms, nor for a time that is
// certainly behind that of the bucket.
func (o *outlook) used(elapsed int64) (least, most int64, ok bool) {
	left := o.reset - elapsed
	if o.l.algorithm != AlgorithmTokenBucket || left <= 0 || left > o.l.fill {
		return 0, 0, false
	}
	return (left-1)*o.l.rate + 1, left * o.l.rate, true
}

// retryAt is the wait of a cost that is more than what remains.
func (o *outlook) retryAt(cost, elapsed int64) (retry int64, ok bool) {
	if cost > o.l.capacity {
		return never, true
	}
	for _, k := range o.known {
		switch {
		case k.cost == 0:
		case k.cost == cost:
			return k.retry - elapsed, k.retry > elapsed
		case k.cost < cost && k.retry == o.reset: // when everything fits
			return o.reset - elapsed, true
		}
	}
	switch o.l.algorithm {
	case AlgorithmFixedWindow:
		return o.reset - elapsed, o.remaining > 0
	case AlgorithmStepped:
		ahead := o.steps(o.l.full-o.remaining) - o.steps(cost-o.remaining)
		return o.reset - ahead*o.l.period - elapsed, o.remaining > 0
	default:
		return o.tokenBucketRetry(cost, elapsed)
	}
}

// tokenBucketRetry is what the refill says. But a turn may be ahead of that if nothing remains,
// though not later than the moment at which another cost would be granted.
func (o *outlook) tokenBucketRetry(cost, elapsed int64) (retry int64, ok bool) {
	least, most, ok := o.used(elapsed)
	missing := cost*o.l.unit - o.l.full
	if !ok || least+missing <= 0 {
		return 0, false
	}
	retry = o.l.perRate.ceil(least + missing)
	return retry, retry == o.l.perRate.ceil(most+missing) && (o.remaining > 0 || o.fitsBy(elapsed+retry))
}

// fitsBy says whether a cost is known to fit by then.
func (o *outlook) fitsBy(then int64) bool {
	for _, k := range o.known {
		if k.cost > 0 && k.retry <= then {
			return true
		}
	}
	return false
}

// agrees says whether later, the outlook after an answer that came when so much time had
// passed, is that of the same state. By clocks apart each of the two may be late by its
// margin.
func (o *outlook) agrees(later *outlook, elapsed, margin, laterMargin int64) bool {
	reset := elapsed + later.reset
	if o.reset > reset+laterMargin || reset > o.reset+margin {
		return false
	}
	if o.remaining == later.remaining {
		return true
	}
	remaining, ok := o.remainingAt(elapsed)
	return ok && remaining == later.remaining
}
