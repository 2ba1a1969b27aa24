package headgate

import "math/rand/v2"

// turnOfAll finds the turn of requests that are granted together: the latest of theirs, if
// each may wait so long.
type turnOfAll struct {
	wait    int64 // until the turn of all
	refused bool
	most    int64 // how long all may wait, and 1 more; 0: as long as they like
	shared  bool  // two ask for one state, and one of them would have to wait

	parts  int    // how many are granted together
	ticket uint64 // by which those of them are known that may not be taken back
}

// add is for a request whose own turn is in retry, and which may share its state with another.
func (a *turnOfAll) add(r *Request, retry int64, shared bool) {
	if r.Cost <= 0 {
		a.refused = a.refused || r.Ticket != 0 && retry == never
		return
	}
	a.parts++
	if a.refused = a.refused || retry == never; a.refused {
		return
	}
	a.shared = a.shared || shared && retry > 0
	a.wait = max(a.wait, retry)
	if most := r.MaxWait.Microseconds() + 1; a.most == 0 || most < a.most {
		a.most = most
	}
}

func (a *turnOfAll) granted() bool { return !a.refused && (a.most == 0 || a.wait < a.most) }

// order is what r asks at now, at the turn of all. What may neither wait nor be taken
// back has its turn at once, whatever becomes of the others; and so has a refund or a look.
func (a *turnOfAll) order(r *Request, now int64) order {
	o := r.order(now)
	if a.wait > 0 && o.cost > 0 {
		o.after = now + a.wait
	}
	if o.cost <= 0 || o.wait == 0 && o.ticket == 0 {
		return o
	}
	o.parts = a.parts
	if o.ticket == 0 && a.parts > 1 {
		if a.ticket == 0 {
			a.ticket = rand.Uint64() | 1
		}
		o.ticket, o.stays = a.ticket, true
	}
	return o
}
