package algorithm

// steppedTokenBucket decides by a bucket that gains refill tokens at once, at each whole
// period since it was last full. used counts the tokens missing from a full bucket; step is
// the latest step, or the moment at which the bucket was first taken from.
func (l *Rule) steppedTokenBucket(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	step, used := s.Step, s.Used
	steps := l.perPeriod.floor(now - step)
	if steps > l.perRefill.floor(used) || used <= steps*l.Refill {
		step, used = now, 0
	} else {
		step, used = step+steps*l.period, used-steps*l.Refill
	}
	ask := l.ask(cost)
	v := Verdict{}
	switch {
	case ask > l.Capacity || used+ask > l.Capacity && ask > 0:
		if charge == Force {
			used = l.forced(used, ask)
		}
		v.Retry = Never
		if ask <= l.Capacity {
			v.Retry = skew + l.perRefill.ceil(used+ask-l.Capacity)*l.period - (now - step)
		}
	case charge != Nothing:
		used = max(used+ask, 0)
	}
	v.Remaining = l.Capacity - used
	if used == 0 {
		return State{}, v
	}
	v.Reset = skew + l.perRefill.ceil(used)*l.period - (now - step)
	return State{At: now, Used: used, Step: step}, v
}

// Pack puts what a stepped bucket has used, and the time since its latest step, which is
// less than a period, into one word.
func (l *Rule) Pack(used, since int64) int64 { return used*l.period + since }

// Unpack is the reverse of Pack.
func (l *Rule) Unpack(packed int64) (used, since int64) {
	used = l.perPeriod.floor(packed)
	return used, packed - used*l.period
}
