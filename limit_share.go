package headgate

// Share returns the part of l that one of several instances may grant by itself, so that all
// instances together keep l while they cannot reach the store. The share has the name and the ID of
// l; [Decision.Degraded] distinguishes the two. If instances is below 1, the number is unknown: do
// not decide by that share. A fallback puts it into unchecked decisions ([Decision.Unchecked]).
//
// A bucket's capacity is divided and rounded down. The rate of a token bucket is divided exactly;
// the step of a stepped bucket and the count of a window are rounded down. A share has at least one
// token: if less would be left, its period or window is longer instead. So over time, and as long
// as instances stays the same, all shares together grant at most what l grants. Their capacities
// add up to at most the capacity of l, or to one token for each instance if that is more. No share
// is slower than one token in 142 years. An invalid limit is its own share.
func (l Limit) Share(instances int) Limit {
	if !l.valid() {
		return l
	}
	t := *l.terms()
	t.ShareOf, t.Unknown = l.rule.ID, instances < 1
	t.Divide(min(max(int64(instances), 1), maxExact))
	return newLimit(t)
}
