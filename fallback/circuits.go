package fallback

import (
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
	return c.named(strings.Join(slices.Compact(servers), ", "))
}

func (c *circuits) named(servers string) *circuit {
	if servers != "" {
		if found, ok := c.others.Get(servers); ok {
			return found
		}
	}
	return c.common
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
