package headgate

import "slices"

// What waits for its turn, and what may still be taken back.
//
// A grant that is booked ahead counts at its turn, which is the first moment at which it
// fits after all that were granted before it: first come, first served. So the state of
// such a key is that after its last turn, and for everybody who comes before that moment
// time stands there.
//
// A grant with a ticket may be taken back, see takeback.go. So the store keeps what it kept
// before the first such grant, and every grant since.

// order is what a request asks, in microseconds.
type order struct {
	now, cost int64
	wait      int64  // how far ahead its turn may be
	ticket    uint64 // what it is known by, if not 0
	parts     int    // how many are granted together that are known by one ticket, or should be
	stays     bool   // it may not be taken back
	hold      int64  // for how long after its turn it may be
	after     int64  // its turn is not before this, which others of its group decide
}

// account is all that is kept of a key under a limit, but for its turns.
type account struct {
	state  // of a log: unused
	other  version
	log    []entry
	keeper *rule // of the log
}

// turns is what is kept beside that while a turn is ahead, or a grant may be taken back.
type turns struct {
	l      *rule   // by which the grants were made, if there are any
	base   account // before the first of the grants
	floor  int64   // the last turn before those
	grants []grant // in order of their turns
	seen   int64   // the latest time of a grant: time never runs back
	till   int64   // until when any of it matters
}

// grant is one that may still be taken back, or that came after one of those.
type grant struct {
	ticket uint64
	parts  int
	asked  int64 // its turn is not before this
	cost   int64
	turn   int64
	until  int64 // it may be taken back until then; 0: never
}

// maxGrants bounds how many grants of a key are kept. Of more, the first can no longer be
// taken back.
const maxGrants = 1024

// mostGrants is that for l. To make a grant again costs as much as its log is long.
func (l *rule) mostGrants() int64 {
	if l.algorithm != AlgorithmSlidingLog {
		return maxGrants
	}
	return min(maxGrants, 1+maxGrants*maxGrants/l.capacity)
}

// last is the latest turn that was given.
func (q *turns) last() int64 {
	if n := len(q.grants); n > 0 {
		return q.grants[n-1].turn
	}
	return q.floor
}

// closed is q when all its grants count for good.
func (q *turns) closed() turns { return turns{floor: q.last(), seen: q.seen, till: q.last()} }

// decideAccount is decide for whatever is kept.
func (l *rule) decideAccount(k account, now, cost int64, charge bool) (account, verdict) {
	var v verdict
	if l.algorithm != AlgorithmSlidingLog {
		k.state, k.other, v = l.decideBeside(k.state, k.other, now, cost, charge)
		return k, v
	}
	v = slidingLog(l, k.log, now, cost, charge)
	if charge && v.granted() {
		log, keeper := stillKept(k.log, k.keeper, l, now)
		k.log = latest(record(slices.Clone(log), now, l.ask(cost)), mostKept(log, keeper, l))
		k.keeper = keeper
	}
	return k, v
}

// decideTurn decides an order on a key of which k is kept, and q beside it, and charges it
// if that is set and its turn is not too far ahead; then changed is set. The retry of the
// verdict is the wait until its turn, also if it is granted.
func (l *rule) decideTurn(k account, q turns, o order, charge bool) (next account, after turns, v verdict, changed bool) {
	now := max(o.now, q.seen)
	if _, v := l.decideAccount(k, now, 0, false); v.reset == 0 && q.finished(now) {
		now, q = o.now, turns{} // as at first sight
	}
	if o.ticket != 0 && o.cost <= 0 {
		return l.decideTicket(k, q, o, now, charge)
	}
	if o.cost < 0 && q.last() > now {
		return k, q, l.lookTurn(k, q, o, now), false // it would make room at a turn that is not its own
	}
	at := max(now, q.last(), o.after)
	_, v = l.decideAccount(k, at, o.cost, false)
	turn := at + max(v.retry, 0)
	v = v.from(o.now, now, at, turn)
	switch {
	case o.cost < 0:
		v.retry = 0
	case turn > maxExact:
		v.retry = never
	}
	if !charge || !v.within(o.wait) && o.cost >= 0 {
		return k, q, v, false
	}
	next, charged := l.decideAccount(k, turn, o.cost, true)
	if len(q.grants) == 0 {
		q.l, q.base = l, k
		q.base.log = slices.Clone(k.log) // which is the store's to write to
	}
	g := o.grantedAt(turn, l.ask(o.cost))
	q.grants, q.till = append(q.grants, g), max(q.till, g.needed())
	q.seen = now
	retry := v.retry
	v = charged.from(o.now, now, turn, turn)
	v.retry = retry
	return next, l.settle(q, now), v, true
}

// within says whether a turn that is at most wait ahead is granted.
func (v verdict) within(wait int64) bool { return v.retry != never && v.retry <= wait }

// from is v, the verdict at a time that may be ahead, as seen from then, which may
// lie behind now because the clock stepped back.
func (v verdict) from(then, now, at, turn int64) verdict {
	if v.reset > 0 {
		v.reset += at - then
	}
	if v.retry != never {
		v.retry = turn - now
	}
	if v.retry > 0 {
		v.retry += now - then
	}
	if at > now {
		v.remaining = 0
	}
	return v
}

// lookTurn is the verdict after something was given back.
func (l *rule) lookTurn(k account, q turns, o order, now int64) verdict {
	at := max(now, q.last())
	_, v := l.decideAccount(k, at, 0, false)
	v = v.from(o.now, now, at, at)
	v.retry = 0
	return v
}

// grantedAt is the grant of o, whose turn is then.
func (o *order) grantedAt(turn, cost int64) grant {
	g := grant{ticket: o.ticket, parts: o.parts, asked: o.now, cost: cost, turn: turn}
	if o.ticket != 0 && !o.stays {
		g.until = min(turn+o.hold, maxExact)
	}
	return g
}

// final says whether g counts for good.
func (g grant) final(now int64) bool { return g.until == 0 || g.turn <= now && g.until <= now }

// settle moves the grants that count for good into the base of q.
func (l *rule) settle(q turns, now int64) turns {
	n := 0
	for n < len(q.grants) && (q.grants[n].final(now) || int64(len(q.grants)-n) > l.mostGrants()) {
		q.base, _ = l.decideAccount(q.base, q.grants[n].turn, q.grants[n].cost, true)
		q.floor = q.grants[n].turn
		n++
	}
	q.grants = q.grants[n:]
	return q
}

// needed is until when g matters.
func (g grant) needed() int64 {
	if g.until == 0 {
		return g.turn
	}
	return g.until
}

// finished says whether all turns have come and all grants count for good.
func (q *turns) finished(now int64) bool { return q.till <= now }

// over says whether nothing of q matters any more.
func (q *turns) over(now int64) bool { return len(q.grants) == 0 && q.floor <= now }
