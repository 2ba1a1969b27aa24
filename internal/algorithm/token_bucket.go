package algorithm

// tokenBucket decides by a bucket that refills continuously. used counts the units missing
// from a full bucket at the instant at.
//
// It is the continuous-state leaky bucket of ITU-T I.371, annex A (which is also GCRA), in
// whole numbers: used is the content of the leaky bucket.
func (l *Rule) tokenBucket(s State, now, cost int64, charge Charge) (State, Verdict) {
	skew := max(s.At-now, 0)
	now += skew
	used := int64(0)
	if elapsed := now - s.At; elapsed < l.repay {
		used = max(s.Used-elapsed*l.Rate, 0)
	}
	ask := l.ask(cost)
	v := Verdict{}
	switch {
	case ask > l.Capacity || used+ask*l.Unit > l.full && ask > 0:
		if charge == Force {
			used = l.forced(used, ask)
		}
		v.Retry = Never
		if ask <= l.Capacity {
			v.Retry = skew + l.perRate.ceil(used+ask*l.Unit-l.full)
		}
	case charge != Nothing:
		used = max(used+ask*l.Unit, 0)
	}
	v.Remaining = l.Capacity - l.perUnit.ceil(used)
	if used == 0 {
		return State{}, v
	}
	v.Reset = skew + l.perRate.ceil(used)
	return State{At: now, Used: used}, v
}
