package chaos

import (
	"context"
	"errors"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/internal/redistest"
	"github.com/headgate/headgate/redisstore"
	"github.com/redis/go-redis/v9"
)

// serverFaults befall a single server.
func serverFaults() []fault {
	return []fault{
		{name: "SCRIPT FLUSH", build: scriptFlush, quiet: true},
		{name: "CLIENT PAUSE", build: clientPause, sees: []string{"no answer in time"}},
		{name: "hangs (SIGSTOP)", build: hang, sees: []string{"no answer in time"}},
		{name: "killed each second, starts empty", build: killed, bound: "a fresh limit for each start"},
		{name: "becomes a read-only replica", build: demoted, sees: []string{"READONLY"}},
	}
}

// openURL makes stores by a URL.
func openURL(t *testing.T, url string) func(prefix string) (*redisstore.Store, func()) {
	return func(prefix string) (*redisstore.Store, func()) {
		s, err := redisstore.Open(url + "?prefix=" + prefix)
		if err != nil {
			t.Fatal(err)
		}
		return s, func() { _ = s.Close() }
	}
}

// openClient makes stores with clients of the caller's.
func openClient(t *testing.T, o redis.Options) func(prefix string) (*redisstore.Store, func()) {
	return func(prefix string) (*redisstore.Store, func()) {
		client := redis.NewClient(&o)
		s, err := redisstore.New(client, redisstore.Options{Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		return s, func() { _ = client.Close() }
	}
}

// do gives a command to a server, whether or not the load's time is over.
func do(t *testing.T, s *redistest.Server, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	reply, err := s.Do(ctx, command...)
	if err != nil {
		t.Errorf("%s: %v", command, err)
	}
	return reply
}

// counted reads a number of INFO, 0 if it is not there.
func counted(t *testing.T, s *redistest.Server, section, name string) int64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + `[:=](?:count=)?(\d+)`).FindStringSubmatch(do(t, s, "INFO", section))
	if found == nil {
		return 0
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	return n
}

// answers returns an error until the servers have answered so.
func answers(t *testing.T, name string, servers ...*redistest.Server) func() error {
	return func() error {
		for _, s := range servers {
			if counted(t, s, "errorstats", "errorstat_"+name) > 0 {
				return nil
			}
		}
		return errors.New("no answer was " + name)
	}
}

func scriptFlush(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{
		open:   openURL(t, s.URL()),
		inject: func(over <-chan struct{}) { every(over, 20*time.Millisecond, func() { do(t, s, "SCRIPT", "FLUSH") }) },
		heal:   func() {},
		felt:   answers(t, "NOSCRIPT", s),
	}
}

func clientPause(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{
		open:   openURL(t, s.URL()),
		inject: func(over <-chan struct{}) { every(over, time.Second, func() { do(t, s, "CLIENT", "PAUSE", "700") }) },
		heal:   func() { do(t, s, "PING") }, // it is answered when the pause is over
	}
}

func hang(t *testing.T) *scene {
	s := redistest.Start(t)
	return &scene{
		open:   openURL(t, s.URL()),
		inject: func(<-chan struct{}) { signal(t, s, syscall.SIGSTOP) },
		heal:   func() { signal(t, s, syscall.SIGCONT) },
	}
}

func signal(t *testing.T, s *redistest.Server, sig os.Signal) {
	t.Helper()
	p, err := os.FindProcess(s.Pid)
	if err == nil {
		err = p.Signal(sig)
	}
	if err != nil {
		t.Error(err)
	}
}

// killed kills the server each second, and starts it again at once, with nothing.
func killed(t *testing.T) *scene {
	s := redistest.Start(t)
	_, port, _ := net.SplitHostPort(s.Addr)
	starts := int64(0)
	return &scene{
		open: openURL(t, s.URL()),
		inject: func(over <-chan struct{}) {
			every(over, time.Second, func() {
				s.Stop()
				s = redistest.Start(t, "--port", port)
				starts++
			})
		},
		heal:  func() {},
		begun: func(*account) int64 { return starts },
	}
}

// demoted makes the primary a replica of its replica, and back, without a loss.
func demoted(t *testing.T) *scene {
	primary := redistest.Start(t)
	replica := redistest.StartReplica(t, primary)
	return &scene{
		open:   openURL(t, primary.URL()),
		inject: func(<-chan struct{}) { failOver(t, primary, replica) },
		heal:   func() { failOver(t, replica, primary) },
	}
}

// failOver lets two servers change their roles as soon as both know the same.
func failOver(t *testing.T, from, to *redistest.Server) {
	t.Helper()
	host, port, _ := net.SplitHostPort(to.Addr)
	do(t, from, "FAILOVER", "TO", host, port)
	until(t, "failed over", func() bool {
		return isPrimary(t, to) && isReplica(t, from) && strings.Contains(replication(t, from), "master_link_status:up")
	})
}

// replication tells of a server's role, or nothing while it cuts connections to change it.
func replication(t *testing.T, s *redistest.Server) string {
	t.Helper()
	info, _ := s.Do(t.Context(), "INFO", "replication")
	return info
}

func isPrimary(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	return strings.Contains(replication(t, s), "role:master")
}

func isReplica(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	return strings.Contains(replication(t, s), "role:slave")
}
