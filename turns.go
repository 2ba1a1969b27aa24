package headgate

import "slices"

// What waits for its turn, and what may still be taken back.
//
// A grant that is booked ahead counts at its turn, which is the first moment at which it
// fits after all that were granted before it: first come, first served. So the state of
// such a key is that after its last turn, and for everybody who comes before that moment
// time stands there.
//
// A grant with a ticket may be taken back. The store keeps what it kept before the first
// such grant, and every grant since; one is taken back by leaving it out and granting
// the others again, each no earlier than it was asked. So the state is exactly as if
// that one had never been made, for every algorithm and whatever was granted after it.

// order is what a request asks, in microseconds.
type order struct {
	now, cost int64
	wait      int64  // how far ahead its turn may be
	ticket    uint64 // to take it back by, if not 0
	hold      int64  // and for how long after its turn
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
	asked  int64 // its turn is not before this
	cost   int64
	turn   int64
	until  int64 // it may be taken back until then
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
	g := grant{o.ticket, max(now, o.after), l.ask(o.cost), turn, min(turn+o.hold, maxExact)}
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

// decideTicket looks for the grant of a ticket: what is asked is when its turn comes, or that it
// is taken back. If there is none, or it counts for good, the answer is never.
func (l *rule) decideTicket(k account, q turns, o order, now int64, charge bool) (next account, after turns, v verdict, changed bool) {
	i := slices.IndexFunc(q.grants, func(g grant) bool { return g.ticket == o.ticket })
	known := i >= 0 && !q.grants[i].final(now)
	wait := int64(0)
	switch {
	case known && o.cost == 0:
		wait = max(q.grants[i].turn-now, 0)
	case known && charge:
		k, q = l.takeBack(k, q, i, o.cost, now)
		changed = true
	}
	v = l.lookTurn(k, q, o, now)
	switch {
	case !known:
		v.retry = never
	case wait > 0:
		v.retry = wait + now - o.now
	}
	return k, q, v, changed
}

// takeBack leaves out grant i, or so much of it, and grants what came after it again.
func (l *rule) takeBack(k account, q turns, i int, cost, now int64) (account, turns) {
	q.grants = slices.Clone(q.grants)
	if q.grants[i].cost += max(cost, -l.capacity); q.grants[i].cost <= 0 {
		q.grants = slices.Delete(q.grants, i, i+1)
	}
	k = q.base
	k.log = slices.Clone(k.log)
	last := q.floor
	q.till = last
	for i := range q.grants {
		g := &q.grants[i]
		at := max(g.asked, last)
		_, v := l.decideAccount(k, at, g.cost, false)
		g.turn = at + max(v.retry, 0)
		k, _ = l.decideAccount(k, g.turn, g.cost, true)
		last, q.till = g.turn, max(q.till, g.needed())
	}
	return k, l.settle(q, now)
}

// final says whether g counts for good.
func (g grant) final(now int64) bool { return g.ticket == 0 || g.turn <= now && g.until <= now }

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
	if g.ticket == 0 {
		return g.turn
	}
	return g.until
}

// finished says whether all turns have come and all grants count for good.
func (q *turns) finished(now int64) bool { return q.till <= now }

// over says whether nothing of q matters any more.
func (q *turns) over(now int64) bool { return len(q.grants) == 0 && q.floor <= now }

// turnOfAll finds the turn of requests that are granted together: the latest of theirs, if
// each may wait so long.
type turnOfAll struct {
	wait    int64 // until the turn of all
	refused bool
	most    int64 // how long all may wait, and 1 more; 0: as long as they like
	shared  bool  // two ask for one state, and one of them would have to wait
}

// add is for a request whose own turn is in retry, and which may share its state with another.
func (a *turnOfAll) add(r *Request, retry int64, shared bool) {
	if r.Cost < 0 || r.Cost == 0 && r.Ticket == 0 {
		return
	}
	if a.refused = a.refused || retry == never; a.refused || r.Cost == 0 {
		return
	}
	a.shared = a.shared || shared && retry > 0
	a.wait = max(a.wait, retry)
	if most := r.MaxWait.Microseconds() + 1; a.most == 0 || most < a.most {
		a.most = most
	}
}

func (a *turnOfAll) granted() bool { return !a.refused && (a.most == 0 || a.wait < a.most) }
