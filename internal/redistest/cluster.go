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
	nodes = 3     // the least that can fail over
	slots = 16384 // of every Redis Cluster
)

// clusterTimeout bounds the start of a cluster. Redis refuses writes for the first
// two seconds, so it takes a little more than that.
const clusterTimeout = 30 * time.Second

// Cluster is a Redis Cluster of three primaries that share all slots evenly, the
// lowest slots on the first.
type Cluster struct {
	Servers []*Server
	Addrs   []string // of the servers, in their order
}

// StartCluster starts a cluster that stops when the test ends. It takes over two
// seconds, so tests do well to share one. args are given to every server, as in
// [Start].
func StartCluster(tb testing.TB, args ...string) *Cluster {
	tb.Helper()
	c, err := RunCluster(tb.Context(), args...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// RunCluster starts a cluster without a test, and returns once every node says
// that the cluster is well. ctx bounds the start alone.
func RunCluster(ctx context.Context, args ...string) (*Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
	defer cancel()
	c := new(Cluster)
	for range nodes {
		s, err := Run(ctx, append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}, args...)...)
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
	for i, s := range c.Servers {
		_, err := s.Do(ctx, addSlots(slots*i/nodes, slots*(i+1)/nodes)...)
		if err != nil {
			return fmt.Errorf("redistest: add slots: %w", err)
		}
		// Each node its own epoch: those of one epoch argue about it for a while.
		if _, err := s.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)); err != nil {
			return fmt.Errorf("redistest: set epoch: %w", err)
		}
	}
	for _, s := range c.Servers[1:] {
		host, port, err := net.SplitHostPort(s.Addr)
		if err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
		if _, err := c.Servers[0].Do(ctx, "CLUSTER", "MEET", host, port); err != nil {
			return fmt.Errorf("redistest: meet: %w", err)
		}
	}
	for _, s := range c.Servers {
		if err := s.awaitCluster(ctx); err != nil {
			return err
		}
	}
	return nil
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
func (s *Server) awaitCluster(ctx context.Context) error {
	for {
		info, err := s.Do(ctx, "CLUSTER", "INFO")
		if err == nil && strings.Contains(info, "cluster_state:ok") &&
			strings.Contains(info, fmt.Sprintf("cluster_size:%d\r\n", nodes)) {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redistest: no cluster: %w\n%s", errors.Join(ctx.Err(), err), info)
		}
	}
}
