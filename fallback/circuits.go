package fallback

import (
	"context"
	"slices"
	"strings"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/limitmap"
)

// circuits are a circuit for each server of the store, so that a server that fails does not keep
// the others from deciding. A call that needs several servers has a circuit for just these.
type circuits struct {
	common *circuit                        // of the only server, or if it is not known
	server func(key string) string         // the address; nil: there is one server
	others *limitmap.Map[string, *circuit] // by addresses
}

const separator = ", " // of the servers of a circuit

const maxCircuits = 1000 // further calls share the common one

func newCircuits(store headgate.Store, o Options) circuits {
	c := circuits{common: newCircuit(o, ""), others: limitmap.New(maxCircuits,
		func(servers string) *circuit { return newCircuit(o, servers) })}
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
	return c.named(c.server(key))
}

// ofAll returns the circuit of the servers that have the keys of rs.
func (c *circuits) ofAll(rs []headgate.Request) *circuit {
	if c.server == nil {
		return c.common
	}
	servers := make([]string, len(rs))
	for i := range rs {
		servers[i] = c.server(rs[i].Key)
	}
	slices.Sort(servers)
	return c.named(strings.Join(slices.Compact(servers), separator))
}

func (c *circuits) named(servers string) *circuit {
	if servers != "" {
		if found, ok := c.others.Get(servers); ok {
			return found
		}
	}
	return c.common
}

// takeByServer decides the requests of each server by themselves: the circuit of them all is open,
// and those that answer must go on to limit. If one denies, what was taken before is refunded, and
// the rest is not charged.
func (s *Store) takeByServer(
	ctx context.Context, rs []headgate.Request, ds []headgate.Decision,
) error {
	byCircuit, order := map[*circuit][]int{}, []*circuit{}
	for i := range rs {
		c := s.circuits.of(rs[i].Key)
		if byCircuit[c] == nil {
			order = append(order, c)
		}
		byCircuit[c] = append(byCircuit[c], i)
	}
	denied := false
	var taken []headgate.Request
	for _, c := range order {
		var own []headgate.Request
		for _, i := range byCircuit[c] {
			r := rs[i]
			if denied && r.Cost > 0 && !r.Force {
				r.Cost, r.Headroom = 0, 0
			}
			own = append(own, r)
		}
		decisions := make([]headgate.Decision, len(own))
		err := s.TakeAll(ctx, own, decisions)
		if err == nil && headgate.Granted(own, decisions) {
			taken = append(taken, own...)
		} else if !denied {
			denied = true
			s.refund(context.WithoutCancel(ctx), taken)
		}
		if err != nil {
			return err
		}
		for j, i := range byCircuit[c] {
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
