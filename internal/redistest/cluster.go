package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	nodes = 3     // primaries: the least that can fail over
	slots = 16384 // of every Redis Cluster
)

// clusterTimeout bounds the start of a cluster. Redis refuses writes for the first
// two seconds, so it takes a little more than that.
const clusterTimeout = 2 * time.Minute

// Cluster is a Redis Cluster of three primaries that share all slots evenly, the lowest slots on
// the first, and in the end replicas in the order of their primaries, if they were asked for.
type Cluster struct {
	Servers []*Server
	Addrs   []string // of the servers, in their order
}

// StartCluster starts a cluster that stops when the test ends. It takes over two seconds, so tests
// do well to share one. args are given to every server, as in [Start].
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c, err := RunCluster(tb.Context(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// StartReplicatedCluster is [StartCluster] with a replica for each primary, which takes
// its place a second or two after it is gone.
func StartReplicatedCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), clusterTimeout)
	defer cancel()
	c, err := runCluster(ctx, 2*nodes,
		append([]string{"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
			"--repl-ping-replica-period", "1"}, args...))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	if err := c.replicate(ctx); err != nil {
		tb.Fatal(err)
	}
	return c
}

// RunCluster starts a cluster without a test, and returns once every node says
// that the cluster is well. ctx bounds the start alone.
func RunCluster(ctx context.Context, args ...string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	return runCluster(ctx, nodes, args)
}

// runCluster starts a cluster of that many servers, of which the first are primaries. The node
// timeout is 10 seconds: on a busy machine, a healthy server can be silent for two seconds.
func runCluster(ctx context.Context, servers int, args []string) (*Cluster, error) {
	c := new(Cluster)
	for range servers {
		s, err := Run(ctx,
			append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "10000"},
				args...)...)
		if err != nil {
			c.Stop()
			return nil, err
		}
		c.Servers = append(c.Servers, s)
		c.Addrs = append(c.Addrs, s.Addr)
	}
	if err := c.join(ctx); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// Stop ends all servers at once, as a crash would. Later calls do nothing.
func (c *Cluster) Stop() {
	var wg sync.WaitGroup
	for _, s := range c.Servers {
		wg.Go(s.Stop)
	}
	wg.Wait()
}

// join deals out the slots, lets the nodes meet and waits until all are well.
func (c *Cluster) join(ctx context.Context) error {
	for i, s := range c.Servers[:nodes] {
		_, err := s.Do(ctx, addSlots(slots*i/nodes, slots*(i+1)/nodes)...)
		if err != nil {
			return fmt.Errorf("redistest: add slots: %w", err)
		}
		// Each node its own epoch: those of one epoch argue about it for a while.
		if _, err := s.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return fmt.Errorf("redistest: set epoch: %w", err)
		}
	}
	for i, s := range c.Servers { // each meets all: gossip takes longer
		for _, other := range c.Servers[:i] {
			if _, err := s.Do(ctx, "CLUSTER", "MEET", loopback, other.port()); err != nil {
				return fmt.Errorf("redistest: meet: %w", err)
			}
		}
	}
	for _, s := range c.Servers {
		if err := s.awaitCluster(ctx, len(c.Servers)); err != nil {
			return err
		}
	}
	return nil
}

// replicate makes replicas of all servers that are no primaries.
func (c *Cluster) replicate(ctx context.Context) error {
	for i, s := range c.Servers[nodes:] {
		id, err := c.Servers[i].Do(ctx, "CLUSTER", "MYID")
		if err != nil {
			return fmt.Errorf("redistest: id: %w", err)
		}
		if _, err := s.Do(ctx, "CLUSTER", "REPLICATE", id); err != nil {
			return fmt.Errorf("redistest: replicate: %w", err)
		}
	}
	for i, s := range c.Servers[nodes:] {
		if err := s.awaitInfo(ctx, "replication", "role:slave",
			"master_link_status:up\r\n"); err != nil {
			return err
		}
		// A primary whose replica the others do not know of is not replaced.
		if err := c.Servers[(i+1)%nodes].awaitReply(ctx, []string{"CLUSTER", "SLOTS"},
			s.port()); err != nil {
			return err
		}
	}
	return nil
}

// Move moves a slot with all its keys from one server to another, as a resharding does,
// while clients go on using it. It calls meanwhile when the keys have gone and the slot has
// not: then clients are sent after them with ASK.
//
// Each move gives the target a higher epoch, which wins over what older messages say of its slots.
// So let no other server be a target until the others have heard of it, or they may fall out.
func (c *Cluster) Move(ctx context.Context, slot, from, to int, meanwhile func()) error {
	number := strconv.Itoa(slot)
	source, target := c.Servers[from], c.Servers[to]
	sourceID, err := source.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return fmt.Errorf("redistest: id: %w", err)
	}
	targetID, err := target.Do(ctx, "CLUSTER", "MYID")
	if err != nil {
		return fmt.Errorf("redistest: id: %w", err)
	}
	if err := target.setSlot(ctx, number, "IMPORTING", sourceID); err != nil {
		return err
	}
	if err := source.setSlot(ctx, number, "MIGRATING", targetID); err != nil {
		return err
	}
	if err := source.migrate(ctx, number, target); err != nil {
		return err
	}
	meanwhile()
	told := []*Server{target, source} // the target first: there must always be an owner
	for i, s := range c.Servers[:nodes] {
		if i != from && i != to {
			told = append(told, s)
		}
	}
	for _, s := range told {
		if err := s.setSlot(ctx, number, "NODE", targetID); err != nil {
			return err
		}
	}
	return nil
}

// setSlot changes what a server knows of a slot, as soon as it agrees: after a slot was
// moved, servers may disagree for a moment.
func (s *Server) setSlot(ctx context.Context, slot, state, id string) error {
	return s.insist(ctx, "CLUSTER", "SETSLOT", slot, state, id)
}

// insist repeats a command until the server accepts it. On a busy machine, the servers of a cluster
// can lose contact for a moment, and then refuse the command.
func (s *Server) insist(ctx context.Context, command ...string) error {
	for {
		_, err := s.Do(ctx, command...)
		if err == nil {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s: %w", command[0], errors.Join(ctx.Err(), err))
		}
	}
}

// migrate moves the keys of a slot, one after the other.
func (s *Server) migrate(ctx context.Context, slot string, target *Server) error {
	for {
		keys, err := s.Do(ctx, "CLUSTER", "GETKEYSINSLOT", slot, "100")
		if err != nil || keys == "" {
			return err
		}
		for key := range strings.SplitSeq(keys, "\n") {
			err := s.insist(ctx, "MIGRATE", loopback, target.port(), key, "0", "5000")
			if err != nil {
				return err
			}
		}
	}
}

func (s *Server) port() string {
	_, port, _ := net.SplitHostPort(s.Addr)
	return port
}

// addSlots is the command that gives a node the slots from first to before end.
// ADDSLOTSRANGE would be shorter and is missing from Redis 6.2.
func addSlots(first, end int) []string {
	command := []string{"CLUSTER", "ADDSLOTS"}
	for slot := first; slot < end; slot++ {
		command = append(command, strconv.Itoa(slot))
	}
	return command
}

// awaitCluster returns once the node knows all others and says that all is well.
func (s *Server) awaitCluster(ctx context.Context, servers int) error {
	return s.awaitReply(ctx, []string{"CLUSTER", "INFO"}, "cluster_state:ok",
		fmt.Sprintf("cluster_size:%d\r\n", nodes), fmt.Sprintf("cluster_known_nodes:%d\r\n",
			servers))
}
