package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// sentinels is how many there are: the least of which a majority can lose one.
const sentinels = 3

// SentinelMaster is the name by which the sentinels of [StartSentinel] know their primary.
const SentinelMaster = "main"

// Sentinel is a primary, its replicas, and three sentinels that make a replica the
// primary half a second after the primary is gone.
type Sentinel struct {
	Primary   *Server
	Replicas  []*Server
	Sentinels []*Server
	Addrs     []string // of the sentinels
}

// StartSentinel starts a primary with so many replicas, whose clocks are ahead of the primary's,
// and returns when the sentinels know each other and all of them. It takes a second or two. args
// are given to the primary and the replicas, as in [Start]; a password is for tests of their own.
func StartSentinel(tb testing.TB, replicas int, ahead time.Duration, args ...string) *Sentinel {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), clusterTimeout)
	defer cancel()
	s := new(Sentinel)
	tb.Cleanup(s.Stop)
	if err := s.start(ctx, replicas, ahead, args); err != nil {
		tb.Fatal(err)
	}
	return s
}

func (s *Sentinel) start(
	ctx context.Context, replicas int, ahead time.Duration, args []string,
) (err error) {
	if s.Primary, err = Run(ctx, args...); err != nil {
		return err
	}
	for range replicas {
		r, err := runReplica(ctx, s.Primary, kind{args: args, ahead: ahead})
		if err != nil {
			return err
		}
		s.Replicas = append(s.Replicas, r)
	}
	for range sentinels {
		sentinel, err := runKind(ctx, kind{sentinel: true})
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, sentinel)
		s.Addrs = append(s.Addrs, sentinel.Addr)
		if err := sentinel.monitor(ctx, s.Primary.Addr); err != nil {
			return err
		}
	}
	for _, sentinel := range s.Sentinels {
		err := sentinel.awaitReply(ctx, []string{"SENTINEL", "MASTER", SentinelMaster},
			"num-slaves\n"+strconv.Itoa(replicas)+"\n",
			"num-other-sentinels\n"+strconv.Itoa(sentinels-1)+"\n")
		if err != nil {
			return err
		}
	}
	return nil
}

// monitor lets a sentinel watch the primary at addr.
func (s *Server) monitor(ctx context.Context, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("redistest: %w", err)
	}
	// Redis 7 can ask and tell more often than each second or two; others take longer to begin.
	_, _ = s.Do(ctx, "SENTINEL", "DEBUG", "PUBLISH-PERIOD", "200", "INFO-PERIOD", "200",
		"PING-PERIOD", "500", "TILT-PERIOD", "1000")
	for _, command := range [][]string{
		{"SENTINEL", "MONITOR", SentinelMaster, host, port, strconv.Itoa(sentinels/2 + 1)},
		{"SENTINEL", "SET", SentinelMaster, "down-after-milliseconds", "500"},
		{"SENTINEL", "SET", SentinelMaster, "failover-timeout", "3000"},
	} {
		if _, err := s.Do(ctx, command...); err != nil {
			return fmt.Errorf("redistest: %s: %w", strings.Join(command, " "), err)
		}
	}
	return nil
}

// Stop ends all servers at once, as a crash would. Later calls do nothing.
func (s *Sentinel) Stop() {
	var wg sync.WaitGroup
	for _, server := range slices.Concat([]*Server{s.Primary}, s.Replicas, s.Sentinels) {
		if server != nil {
			wg.Go(server.Stop)
		}
	}
	wg.Wait()
}

// sentinelFile makes the file in which a sentinel keeps what it knows.
func sentinelFile(dir string) (string, error) {
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return file, nil
}
