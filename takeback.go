package headgate

import "slices"

// How a grant is taken back.
//
// It is left out, or so much of it, and the others are made again in their order, each no
// earlier than it was asked. So the state is exactly as if that one had never been made, for
// every algorithm and whatever was granted after it.
//
// What was granted together under several limits has one turn, the latest of theirs. If it is
// taken back under all of them together, the grants of all are made again together, and those
// that are known by one ticket have one turn again. A grant of which a part lies under a limit
// that is not asked now does not move to before its turn: that is not only this limit's to say.

// decideTicket looks for the grant of a ticket: what is asked is when its turn comes, or that it
// is taken back. If there is none, or it counts for good, the answer is never.
func (l *rule) decideTicket(k account, q turns, o order, now int64, charge bool) (next account, after turns, v verdict, changed bool) {
	i, known := q.find(o.ticket, now)
	wait := int64(0)
	switch {
	case known && o.cost == 0:
		wait = max(q.grants[i].turn-now, 0)
	case known && charge:
		all := []again{l.without(q, i, o.cost)}
		grantAgain(all)
		k, q = all[0].account, l.settle(all[0].turns, now)
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

// find is the place of the grant of a ticket that may still be taken back.
func (q *turns) find(ticket uint64, now int64) (i int, known bool) {
	i = slices.IndexFunc(q.grants, func(g grant) bool { return g.ticket == ticket && g.until > 0 })
	return i, i >= 0 && !q.grants[i].final(now)
}

// again is a limit of which the grants are made again: its account and turns are those after
// the grants that have been.
type again struct {
	l *rule
	account
	turns
	left []grant // those that have not been made
}

// without is q with its grants to be made again, but for grant i, or so much of it.
func (l *rule) without(q turns, i int, cost int64) again {
	a := again{l: l, account: q.base, turns: q, left: slices.Clone(q.grants)}
	if a.left[i].cost += max(cost, -l.capacity); a.left[i].cost <= 0 {
		a.left = slices.Delete(a.left, i, i+1)
	}
	a.log = slices.Clone(a.log)
	a.till, a.grants = q.floor, make([]grant, 0, len(a.left))
	return a
}

// own is the turn of the next grant as far as a alone can say.
func (a *again) own(earliest int64) int64 {
	at := max(earliest, a.last())
	_, v := a.l.decideAccount(a.account, at, a.left[0].cost, false)
	return at + max(v.retry, 0)
}

// grant makes the next grant.
func (a *again) grant(turn int64) {
	g := a.left[0]
	g.turn = turn
	a.account, _ = a.l.decideAccount(a.account, turn, g.cost, true)
	a.till = max(a.till, g.needed())
	a.grants, a.left = append(a.grants, g), a.left[1:]
}

// next says whether the next grant is known by that ticket.
func (a *again) next(ticket uint64) bool { return len(a.left) > 0 && a.left[0].ticket == ticket }

// grantAgain makes the grants of all again, each when what is before it has been made.
func grantAgain(all []again) {
	known := parts(all)
	for {
		waits, moved := false, false
		for i := range all {
			for len(all[i].left) > 0 && grantNext(all, i, known) {
				moved = true
			}
			waits = waits || len(all[i].left) > 0
		}
		if !waits {
			return
		}
		if !moved {
			clear(known) // somebody used a ticket twice: now each limit goes on by itself
		}
	}
}

// parts counts the grants of each ticket, if there are several limits.
func parts(all []again) map[uint64]int {
	if len(all) == 1 {
		return nil
	}
	known := make(map[uint64]int)
	for i := range all {
		for _, g := range all[i].left {
			known[g.ticket]++
		}
	}
	return known
}

// grantNext makes the next grant of all[i] again, and what was granted together with it. It does
// nothing and returns false if something before one of those has not been made.
func grantNext(all []again, i int, known map[uint64]int) bool {
	g := all[i].left[0]
	switch {
	case g.parts <= 1:
		all[i].grant(all[i].own(g.asked))
		return true
	case g.parts != known[g.ticket]:
		all[i].grant(all[i].own(g.turn))
		return true
	}
	ready, wait := 0, int64(0)
	for j := range all {
		if a := &all[j]; a.next(g.ticket) {
			ready, wait = ready+1, max(wait, a.own(a.left[0].asked)-a.left[0].asked)
		}
	}
	if ready < g.parts {
		return false
	}
	for j := range all {
		if a := &all[j]; a.next(g.ticket) {
			a.grant(a.left[0].asked + wait)
		}
	}
	return true
}
