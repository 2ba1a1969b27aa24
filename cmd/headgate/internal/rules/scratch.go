package rules

import (
	"time"

	"github.com/headgate/headgate"
)

// scratch is the memory of a decision, which the next one uses again.
type scratch struct {
	engine    *Engine
	active    *active
	found     []*rule
	guards    []charge // of rules that enforce, and count denials
	enforced  []charge // of the others
	shadow    []charge
	requests  []headgate.Request
	answers   []headgate.Decision // of rules in shadow
	admission *Admission          // nil for callers that do not see the end of the request
}

func (e *Engine) prepare() *scratch {
	s := e.scratch.Get().(*scratch) //nolint:forcetypeassert // the pool holds nothing else
	s.engine, s.active = e, e.active.Load()
	return s
}

// free keeps the memory of s, and none of what it points to.
func (e *Engine) free(s *scratch) {
	clear(s.found)
	clear(s.guards)
	clear(s.enforced)
	clear(s.shadow)
	clear(s.requests[:cap(s.requests)])
	s.active, s.admission = nil, nil
	s.found, s.guards = s.found[:0], s.guards[:0]
	s.enforced, s.shadow = s.enforced[:0], s.shadow[:0]
	s.requests, s.answers = s.requests[:0], s.answers[:0]
	e.scratch.Put(s)
}

// match adds the charges of all rules that match q.
func (s *scratch) match(q *Request) {
	t := newTarget(q)
	s.found = s.active.index.match(&t, s.found)
	for _, r := range s.found {
		s.add(r, &t)
	}
}

// add adds what r charges for q. A rule that is off charges nothing.
func (s *scratch) add(r *rule, q *target) {
	if r.Mode == Off {
		return
	}
	c := s.engine.charge(r, r.key(q), 0)
	if !c.banned { // a body is not read for those
		c.cost = r.cost(q)
	}
	c.request, c.percent = q.Request, r.Headroom.percent(q.Header)
	if r.late {
		c.cost = fit(c.cost, c.limits, c.percent, 0)
	}
	switch {
	case r.Mode == Shadow:
		s.shadow = append(s.shadow, c)
	case r.Count.Denied:
		s.guards = append(s.guards, c)
	default:
		s.enforced = append(s.enforced, c)
	}
}

// group returns the requests of charges, one for each limit.
func (s *scratch) group(charges []charge) []headgate.Request {
	s.requests = s.requests[:0]
	for i := range charges {
		c := &charges[i]
		c.first = len(s.requests)
		if s.admission != nil && c.start == nil && c.rule.settles() {
			c.start = new(time.Time)
		}
		s.requests = c.requests(s.requests)
		for j := c.first; j < len(s.requests); j++ {
			if s.requests[j].Limit.Refill() == 0 { // a bucket's refund names no start
				s.requests[j].Start = c.start
			}
		}
	}
	return s.requests
}
