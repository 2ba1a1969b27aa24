package redisstore

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate"
	"github.com/headgate/headgate/internal/redisscript"
)

// Name is the key in Redis for the state of key under l.
func (s *Store) Name(key string, l headgate.Limit) string { return s.key(key, l) }

// Queue is how many may wait in a lane.
func (s *Store) Queue() int { return s.queue }

// SetPatience sets how long a batch may be under way until the next is sent without it.
func (s *Store) SetPatience(d time.Duration) { s.patience = d }

// Queued is how long the queue is in which key waits.
func (s *Store) Queued(key string) int {
	l := s.route.lane(key, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue)
}

// Idle says whether nothing is sent or waits where key would.
func (s *Store) Idle(key string) bool {
	l := s.route.lane(key, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.busy && l.lost == 0 && len(l.queue) == 0
}

// Late says whether the batch under way where key would be is beyond its time.
func (s *Store) Late(key string) bool {
	l := s.route.lane(key, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.busy && time.Since(l.since) > 2*s.patience
}

// Busy says whether one more caller is turned away from a full queue.
func (s *Store) Busy(settling bool) bool {
	l := &lane{store: s, busy: true, queue: make([]*ask, s.queue)}
	how := charges
	if settling {
		how = settles
	}
	_, err := l.join(&ask{how: how})
	return err != nil
}

// SameLanes says whether two keys of a limit without a name are sent to one server, as far as is known.
func (s *Store) SameLanes(a, b string) bool {
	return s.route.to(s.prefix+"{"+escape(a)+"}") == s.route.to(s.prefix+"{"+escape(b)+"}")
}

// Server is the address of the server whose lanes a key is sent to.
func (s *Store) Server(key string) string {
	return s.route.server(s.prefix + "{" + escape(key) + "}").Options().Addr
}

// Servers is how many servers have lanes.
func (s *Store) Servers() int {
	n := 0
	s.route.servers.Range(func(_, _ any) bool { n++; return true })
	return n
}

// Age makes all lanes of servers as if they had been used so much earlier.
func (s *Store) Age(d time.Duration) {
	s.route.servers.Range(func(_, value any) bool {
		all, _ := value.(*lanes)
		for i := range all {
			l := &all[i]
			l.mu.Lock()
			l.since = l.since.Add(-d)
			l.mu.Unlock()
		}
		return true
	})
}

// ClosedIfForgotten says whether nobody may join the lane of a key any more, once all lanes that nobody uses are forgotten.
func (s *Store) ClosedIfForgotten(key string) bool {
	l := s.route.lane(key, s.prefix+"{"+escape(key)+"}")
	s.Age(time.Hour)
	s.route.forget()
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if !closed {
		return false
	}
	_, err := l.join(new(ask))
	return errors.Is(err, errClosed)
}

// VirtualTime lets the scripts take the list "time" in Redis, of seconds and microseconds, for the
// server's clock.
func VirtualTime(t *testing.T) {
	t.Helper()
	for a := headgate.AlgorithmTokenBucket; int(a) < len(parts); a++ {
		set := algorithms(1 << a) // a request alone
		scripts.Store(set, redisscript.New(strings.Replace(source(set), "redis.pcall('TIME')", "redis.pcall('LRANGE', 'time', '0', '-1')", 1)))
	}
	t.Cleanup(scripts.Clear)
}

// FailDial makes it look as if no connection could be made at that time.
func (s *Store) FailDial(err error, at time.Time) { s.dials.failed.Store(&failure{err, at}) }
