package fallback

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limitmap"
)

// circuits are a circuit for each server of the store, so that a server that fails does not keep
// the others from deciding.
type circuits struct {
	common *circuit                        // of the only server, or if it is not known
	server func(key string) string         // the address; nil: there is one server
	others *limitmap.Map[string, *circuit] // by address
	apart  atomic.Int64                    // until when servers are asked by themselves, in Unix ns
}

const maxCircuits = 1000 // further servers share the common one

func newCircuits(store headgate.Store, o Options) *circuits {
	c := &circuits{common: newCircuit(o, ""), others: limitmap.New(maxCircuits,
		func(server string) *circuit { return newCircuit(o, server) })}
	if s, ok := store.(interface {
		Servers() func(key string) string
	}); ok {
		c.server = s.Servers()
	}
	return c
}

// of returns the circuit of the server that has key.
func (c *circuits) of(key string) *circuit {
	if c.server == nil {
		return c.common
	}
	if server := c.server(key); server != "" {
		if found, ok := c.others.Get(server); ok {
			return found
		}
	}
	return c.common
}

// ofAll returns the circuits of rs in order of first appearance, with the indices of the requests.
func (c *circuits) ofAll(rs []headgate.Request) (order []*circuit, indices map[*circuit][]int) {
	indices = make(map[*circuit][]int)
	for i := range rs {
		of := c.of(rs[i].Key)
		if indices[of] == nil {
			order = append(order, of)
		}
		indices[of] = append(indices[of], i)
	}
	return order, indices
}

// takeSeveral decides the requests of several servers: all at once, unless a server is known to
// fail. A failure of them all does not say which server failed, and some may have charged, so the
// mode decides. For a while, later requests then ask each server by itself.
func (s *Store) takeSeveral(
	ctx context.Context, order []*circuit, indices map[*circuit][]int,
	rs []headgate.Request, ds []headgate.Decision,
) error {
	isOpen := func(c *circuit) bool { return !c.isClosed() }
	now, common := time.Now().UnixNano(), s.circuits.common
	if now < s.circuits.apart.Load() || slices.ContainsFunc(order, isOpen) {
		return s.takeByServer(ctx, order, indices, rs, ds)
	}
	_, why := common.attempt(ctx, func(ctx context.Context) error {
		return s.store.TakeAll(ctx, rs, ds)
	})
	if why == nil {
		s.mirrorAll(ctx, rs, ds)
		return nil
	}
	if err := callersError(ctx, why); err != nil {
		return err
	}
	s.circuits.apart.Store(now + int64(interval))
	s.degraded.Add(uint64(len(rs)))
	return s.takeAllDegraded(ctx, rs, ds, &failure{why, common})
}

// takeByServer decides the requests of each server by themselves, so that those that answer go on
// to limit. If one denies, what was taken before is refunded, and the rest is not charged.
func (s *Store) takeByServer(
	ctx context.Context, order []*circuit, indices map[*circuit][]int,
	rs []headgate.Request, ds []headgate.Decision,
) error {
	denied := false
	var taken []headgate.Request
	for _, c := range order {
		var own []headgate.Request
		for _, i := range indices[c] {
			r := rs[i]
			if denied && r.Cost > 0 && !r.Force {
				r.Cost, r.Headroom = 0, 0
			}
			own = append(own, r)
		}
		decisions := make([]headgate.Decision, len(own))
		err := s.takeAll(ctx, c, own, decisions)
		if err == nil && headgate.Granted(own, decisions) {
			taken = append(taken, own...)
		} else if !denied {
			denied = true
			s.refund(context.WithoutCancel(ctx), taken)
		}
		if err != nil {
			return err
		}
		for j, i := range indices[c] {
			ds[i] = decisions[j]
		}
	}
	return nil
}

// refund gives back what was taken and could have been denied.
func (s *Store) refund(ctx context.Context, taken []headgate.Request) {
	for _, r := range taken {
		if r.Cost > 0 && !r.Force {
			_, _ = s.Take(ctx, r.Refund(r.Cost)) // if it fails, the cost stays charged
		}
	}
}

// Stats are counts since a [Store] was made.
type Stats struct {
	// Degraded: a circuit is open, and its server should have been called in the last ten seconds.
	// So it is false again if no request comes, and if a Cluster has replaced the server.
	Degraded bool

	Decisions uint64 // decisions made without the store
	Failures  uint64 // failed calls; damaged values count, but do not open the circuit
}

// Stats returns the counts up to now.
func (s *Store) Stats() Stats {
	all := Stats{Decisions: s.degraded.Load()}
	s.circuits.common.addTo(&all)
	for c := range s.circuits.others.Values() {
		c.addTo(&all)
	}
	return all
}
