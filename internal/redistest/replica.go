package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// StartReplica starts a replica of primary that stops when the test ends, and returns
// when it has caught up. args are those of [Start].
func StartReplica(tb testing.TB, primary *Server, args ...string) *Server {
	tb.Helper()
	s, err := runReplica(tb.Context(), primary, kind{args: args})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// runReplica starts a server of kind k and makes it a replica.
func runReplica(ctx context.Context, primary *Server, k kind) (*Server, error) {
	host, port, err := net.SplitHostPort(primary.Addr)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	k.args = append([]string{"--replicaof", host, port, "--masterauth", primary.password,
		"--requirepass", primary.password}, k.args...)
	s, err := runKind(ctx, k)
	if err != nil {
		return nil, err
	}
	if err := s.awaitInfo(ctx, "replication", "master_link_status:up\r\n"); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// awaitInfo returns once a section of INFO holds all of words.
func (s *Server) awaitInfo(ctx context.Context, section string, words ...string) error {
	return s.awaitReply(ctx, []string{"INFO", section}, words...)
}

// awaitReply returns once the reply to command holds all of words.
func (s *Server) awaitReply(ctx context.Context, command []string, words ...string) error {
	for {
		reply, err := s.Do(ctx, command...)
		if err == nil && containsAll(reply, words) {
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s does not say %q: %w\n%s", s.Addr, words,
				errors.Join(ctx.Err(), err), reply)
		}
	}
}

func containsAll(text string, words []string) bool {
	for _, word := range words {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
