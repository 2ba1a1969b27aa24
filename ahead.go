package headgate

import "slices"

// What a shard keeps of turns, beside its slots: they have no room for it, and few keys
// have any. It is gone with what is kept in the slot.

// turnsOf is what is kept of turns beside t, the slot of place h; or if t is nil, what
// binds a key that begins with what newcomers share.
func (s *shard) turnsOf(t *slot, l *rule, h uint64) (q turns, kept bool) {
	if len(s.ahead) == 0 {
		return turns{}, false
	}
	if t != nil {
		q, kept = s.ahead[h>>idBits]
		return q, kept
	}
	if t = s.shared(l, h); t == nil {
		return turns{}, false
	}
	q, kept = s.ahead[t.tag>>idBits]
	return q.closed(), kept
}

// takeTurn is take for a key beside whose state q is kept, or that may come to have some.
func (s *shard) takeTurn(t *slot, l *rule, h uint64, q turns, o order, charge bool) verdict {
	k, adopted := s.account(t, l, h, max(o.now, q.seen, q.last()))
	if q.l != nil && (!l.sameNumbers(q.l) || l.capacity != q.l.capacity) {
		q = q.closed() // what was granted under other numbers counts for good
	}
	next, after, v, changed := l.decideTurn(k, q, o, charge)
	switch {
	case changed:
		s.writeAccount(t, l, h, next, after, max(o.now, q.seen))
	case adopted && o.cost != 0 && (o.ticket == 0 || o.cost > 0):
		s.writeAccount(t, l, h, k, q, max(o.now, q.seen))
	}
	return v
}

// account is all that is kept in t, adopted to l, or if t is nil that with which the key
// of place h begins.
func (s *shard) account(t *slot, l *rule, h uint64, now int64) (k account, adopted bool) {
	if l.algorithm == AlgorithmSlidingLog {
		k.log, k.keeper, adopted = s.recallLog(t, l, h, now)
	} else {
		k.state, k.other, adopted = s.recall(t, l, h, now)
	}
	if k.used+k.previous == 0 {
		k.state = state{} // now may be ahead, and a state that nothing is used of has no time
	}
	return k, adopted && !s.empty(t)
}

// empty says whether t is as at first sight but for turns.
func (s *shard) empty(t *slot) bool {
	return t != nil && t.b == 0 && s.versionBeside(t, s.limits).l == nil
}

// writeAccount puts k under l, and q beside it, into the place t of h, or into a new one
// if t is nil.
func (s *shard) writeAccount(t *slot, l *rule, h uint64, k account, q turns, now int64) {
	if l.algorithm == AlgorithmSlidingLog {
		s.writeLog(t, k.keeper, h, k.log, 0, 0, maxLog)
	} else {
		s.write(t, l, h, k.state, k.other)
	}
	if t = s.find(h); t == nil {
		return
	}
	if q.over(now) {
		if delete(s.ahead, h>>idBits); len(s.ahead) == 0 {
			s.ahead = nil // a map does not give memory back by itself
		}
		return
	}
	if s.ahead == nil {
		s.ahead = make(map[uint64]turns)
	}
	s.ahead[h>>idBits] = q
	if l.algorithm != AlgorithmSlidingLog {
		t.a |= marked
	}
}

// keepLimitsAhead keeps the limits under which t would be counted if a grant were taken back.
func (s *shard) keepLimitsAhead(t *slot) {
	q, kept := s.ahead[t.tag>>idBits]
	if !kept {
		return
	}
	for _, l := range []*rule{q.base.other.l, q.base.keeper} {
		if l != nil {
			s.register(l)
		}
	}
}

// takeBack takes back what rs[i] asks to, together with what those after it ask of the same
// key, unless one before it has done that.
func takeBack(rs []Request, spots []spot, ds []Decision, i int) {
	if slices.ContainsFunc(rs[:i], func(r Request) bool { return r.takesBack() && r.Key == rs[i].Key }) {
		return
	}
	var all []again
	var places []int
	for j := i; j < len(rs); j++ {
		if !rs[j].takesBack() || rs[j].Key != rs[i].Key {
			continue
		}
		a, known := spots[j].without(&rs[j])
		if !known { // any more: newcomers share a state, and one of them has just taken
			ds[j] = spots[j].take(rs[j].order(spots[j].now), rs[j].Limit)
			continue
		}
		all, places = append(all, a), append(places, j)
	}
	grantAgain(all)
	for n, j := range places {
		ds[j] = spots[j].put(&all[n], &rs[j])
	}
}

// without is what is kept at p, ready to be granted again without what r takes back.
func (p *spot) without(r *Request) (a again, known bool) {
	l := r.Limit.rule
	q, _ := p.shard.turnsOf(p.shard.find(p.h), l, p.h)
	i, known := q.find(r.Ticket, max(p.now, q.seen))
	if !known {
		return again{}, false
	}
	return l.without(q, i, r.Cost), true
}

// put keeps a, which was granted again, and says how it stands.
func (p *spot) put(a *again, r *Request) Decision {
	now := max(p.now, a.seen)
	q := a.l.settle(a.turns, now)
	p.shard.writeAccount(p.shard.find(p.h), a.l, p.h, a.account, q, now)
	return a.l.lookTurn(a.account, q, r.order(p.now), now).decision(r.Limit)
}
